#pragma once
// Events of the worker's own jobs for pictures, as JSON on one line.

#include <string>
#include <string_view>
#include <vector>

#include "server/wire/image_events.h"

namespace rbee::server {

// Payloads of a job's stream.
std::string to_json(const ImageStartedEvent& event);
std::string to_json(const ImageProgressEvent& event);
std::string preview_json(const ImageProgressEvent& progress, std::string_view base64,
                         int32_t index);
std::string complete_json(const std::vector<ImageResult>& images, const ImageTimes& times);

}  // namespace rbee::server
