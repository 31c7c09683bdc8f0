#pragma once
// Anthropic's request bodies for text (Messages API, version 2023-06-01).

#include <string_view>
#include <vector>

#include "server/wire/generate_request.h"

namespace rbee::server {

// A body of POST /v1/messages. Fills in Anthropic's defaults and makes `system` the first message;
// `stream` says whether to stream. What the worker cannot do (tools other than functions, for one)
// is an error; it ignores other unknown fields. Throws InvalidBody.
GenerateRequest parse_anthropic(std::string_view body);
// For POST /v1/messages/count_tokens: only messages and tools. Throws InvalidBody.
GenerateRequest parse_anthropic_count(std::string_view body);

}  // namespace rbee::server
