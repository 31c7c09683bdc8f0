#pragma once
// OpenAI's bodies of requests for text.

#include <string_view>

#include "server/contract/requests.h"

namespace rbee::server {

struct OpenAiRequest {
  GenerateRequest generate;    // OpenAI's defaults are filled in; `stream` says whether to stream
  bool chat = false;           // POST /v1/chat/completions, else /v1/completions
  bool include_usage = false;  // a last piece of the stream counts tokens
  int32_t choices = 1;         // `n`
  int32_t best_of = 1;         // answers made, of which `choices` are given; at least that
};

// A body of POST /v1/chat/completions. Fields that ask for what the worker does not do are
// errors, others that are unknown are ignored. Throws InvalidBody.
OpenAiRequest parse_openai_chat(std::string_view body);
// Of POST /v1/completions, the same.
OpenAiRequest parse_openai_completion(std::string_view body);

}  // namespace rbee::server
