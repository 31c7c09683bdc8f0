#pragma once
// OpenAI's request bodies for text.

#include <string_view>

#include "server/wire/generate_request.h"

namespace rbee::server {

struct OpenAiRequest {
  // With OpenAI's defaults, except for sampling; `stream` says whether to stream. A completion's
  // prompt is in `prompts`. prompt_logprobs: as many as `echo` and the field need.
  GenerateRequest generate;
  std::vector<SentPrompt> prompts = {};         // of a completion: each gets an answer
  bool echo = false;                            // the answer begins with the prompt
  std::optional<int32_t> prompt_logprobs = {};  // the field
  bool chat = false;                            // POST /v1/chat/completions, else /v1/completions
  bool include_usage = false;                   // the stream's last piece counts tokens
  bool continuous_usage = false;                // and so do all others
  bool include_reasoning = true;                // of a chat
  bool return_token_ids = false;                // ids of the tokens of prompts and answers
  bool tokens_as_ids = false;                   // log probabilities name "token_id:<id>"
  bool timings_per_token = false;               // llama-server's "timings" in all pieces
  bool add_special_tokens = true;               // around a completion's prompts
  int32_t choices = 1;                          // `n`, for each prompt
  int32_t best_of = 1;  // generate this many, at least `choices`, and return the best
};

// A body of POST /v1/chat/completions. Fields that ask for what the worker cannot do are errors; it
// ignores other unknown fields. Throws InvalidBody.
OpenAiRequest parse_openai_chat(std::string_view body);
// The same for POST /v1/completions.
OpenAiRequest parse_openai_completion(std::string_view body);
// For SageMaker's POST /invocations: a chat if it has messages, else a completion.
OpenAiRequest parse_invocation_of_text(std::string_view body);

}  // namespace rbee::server
