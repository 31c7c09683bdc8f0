#pragma once
// Image answers in OpenAI's form, as JSON on one line.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/image_events.h"

namespace rbee::server {

// created: seconds since 1970.
std::string openai_images_json(const std::vector<ImageResult>& images, int64_t created,
                               bool as_url);
// operation: prefix of the events' types, "image_generation" or "image_edit".
struct OpenAiPartial {
  std::string_view operation, base64;
  std::string_view size;  // of the finished picture, "512x768"
  int32_t index = 0;
  int64_t created = 0;
};
std::string openai_partial_json(const OpenAiPartial& partial);
std::string openai_completed_json(std::string_view operation, const ImageResult& image,
                                  int64_t created);

}  // namespace rbee::server
