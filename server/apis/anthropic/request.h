#pragma once
// Anthropic's bodies of requests for text (Messages API, version 2023-06-01).

#include <string_view>
#include <vector>

#include "server/wire/generate_request.h"

namespace rbee::server {

// A body of POST /v1/messages: Anthropic's defaults are filled in, `system` is the first message,
// `stream` says whether to stream. What the worker does not do (pictures, other tools than
// functions) is an error; other unknown fields are ignored. Throws InvalidBody.
GenerateRequest parse_anthropic(std::string_view body);
// Of POST /v1/messages/count_tokens: messages and tools alone. Throws InvalidBody.
GenerateRequest parse_anthropic_count(std::string_view body);

}  // namespace rbee::server
