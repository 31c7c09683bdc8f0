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
  // Characters of the answer before these tokens. Below 0: they begin with so many that the answer
  // does not have, such as a mark of the begin.
  int64_t offset = 0;
  bool as_ids = false;  // tokens are told as "token_id:<id>", vLLM's
};

// Characters of the tokens' texts, and of a text.
int64_t character_count(const std::vector<TokenLogprobs>& tokens);
int64_t character_count(std::string_view text);
// A prompt's tokens as the begin of an answer that is `echo`, with `top` likeliest of each.
OpenAiLogprobs echoed_logprobs(const std::vector<TokenLogprobs>& prompt, std::string_view echo,
                               int32_t top);
// vLLM's form of them: [null, {"<id>": {"logprob", "rank", "decoded_token"}, ...}, ...].
nlohmann::ordered_json prompt_logprobs_json(const std::vector<TokenLogprobs>& prompt, int32_t top);
// Of a chat {"content":[...],"refusal":null}, else {"tokens":[...],...}.
nlohmann::ordered_json logprobs_json(bool chat, const OpenAiLogprobs& logprobs);

}  // namespace rbee::server
