#pragma once
// OpenAI's bodies of requests for text.

#include <string_view>

#include "server/wire/generate_request.h"

namespace rbee::server {

struct OpenAiRequest {
  // OpenAI's defaults are filled in, except those of sampling; `stream` says whether to stream. A
  // completion's prompt is in `prompts`. prompt_logprobs: as many as `echo` and the field want.
  GenerateRequest generate;
  std::vector<SentPrompt> prompts = {};         // of a completion: each is answered
  bool echo = false;                            // the prompt is in front of the answer
  std::optional<int32_t> prompt_logprobs = {};  // the field
  bool chat = false;                            // POST /v1/chat/completions, else /v1/completions
  bool include_usage = false;                   // a last piece of the stream counts tokens
  bool continuous_usage = false;                // and so do all others
  bool include_reasoning = true;                // of a chat
  bool return_token_ids = false;                // ids of the tokens of prompts and answers
  bool tokens_as_ids = false;                   // log probabilities name "token_id:<id>"
  bool timings_per_token = false;               // llama-server's "timings" in all pieces
  bool add_special_tokens = true;               // at the ends of a completion's prompts
  int32_t choices = 1;                          // `n`, of each prompt
  int32_t best_of = 1;  // answers made, of which `choices` are given; at least that
};

// A body of POST /v1/chat/completions. Fields that ask for what the worker does not do are
// errors, others that are unknown are ignored. Throws InvalidBody.
OpenAiRequest parse_openai_chat(std::string_view body);
// Of POST /v1/completions, the same.
OpenAiRequest parse_openai_completion(std::string_view body);
// Of SageMaker's POST /invocations: a chat where it has messages, else a completion.
OpenAiRequest parse_invocation_of_text(std::string_view body);

}  // namespace rbee::server
