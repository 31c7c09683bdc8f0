#pragma once
// Log probabilities in OpenAI's forms.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/text_events.h"

namespace rbee::server {

struct OpenAiLogprobs {
  std::vector<TokenLogprobs> tokens;
  // Characters of the answer before these tokens. Below 0: their texts begin with this many
  // characters that the answer does not have, such as a begin token.
  int64_t offset = 0;
  bool as_ids = false;  // show tokens as "token_id:<id>", vLLM's
};

// Characters of the tokens' texts, and of a text.
int64_t character_count(const std::vector<TokenLogprobs>& tokens);
int64_t character_count(std::string_view text);
// A prompt's tokens as the start of an answer that begins with `echo`, with `top` likeliest each.
OpenAiLogprobs echoed_logprobs(const std::vector<TokenLogprobs>& prompt, std::string_view echo,
                               int32_t top);
// vLLM's form: [null, {"<id>": {"logprob", "rank", "decoded_token"}, ...}, ...].
nlohmann::ordered_json prompt_logprobs_json(const std::vector<TokenLogprobs>& prompt, int32_t top);
// For a chat {"content":[...],"refusal":null}, else {"tokens":[...],...}.
nlohmann::ordered_json logprobs_json(bool chat, const OpenAiLogprobs& logprobs);

}  // namespace rbee::server
