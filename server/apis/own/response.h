#pragma once
// Answers and events of the worker's own routes for text, as JSON on one line. U+FFFD replaces
// bytes that are not UTF-8.

#include <string>
#include <string_view>

#include "server/wire/text_events.h"

namespace rbee::server {

// Payloads of a job's stream.
std::string to_json(const StartedEvent& event);
std::string token_json(std::string_view text, int32_t index);
std::string to_json(const MetricsEvent& event);
std::string to_json(const EndEvent& event);

// Answers of /v1/infer: the whole text, or one piece of it.
std::string infer_json(std::string_view text, const EndEvent& end, double duration_ms);
std::string infer_token_json(std::string_view text);

}  // namespace rbee::server
