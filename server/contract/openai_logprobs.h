#pragma once
// Log probabilities in OpenAI's forms.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::server {

struct OpenAiToken {
  std::string bytes;  // perhaps half a character
  float logprob = 0;
  int32_t id = 0;
};
struct OpenAiScored {
  OpenAiToken chosen;
  std::vector<OpenAiToken> top = {};  // the likeliest first
  // Of a prompt's: 1 + the tokens that were likelier, absent of the first, which has no figures.
  std::optional<int32_t> rank = {};
  bool known = true;  // false: such a first one
};
struct OpenAiLogprobs {
  std::vector<OpenAiScored> tokens;
  // Characters of the answer before these tokens. Below 0: they begin with so many that the answer
  // does not have, such as a mark of the begin.
  int64_t offset = 0;
  bool as_ids = false;  // tokens are told as "token_id:<id>", vLLM's
};

// Characters of the tokens' texts, and of a text.
int64_t character_count(const std::vector<OpenAiScored>& tokens);
int64_t character_count(std::string_view text);
// A prompt's tokens as the begin of an answer that is `echo`, with `top` likeliest of each.
OpenAiLogprobs echoed_logprobs(const std::vector<OpenAiScored>& prompt, std::string_view echo,
                               int32_t top);
// vLLM's form of them: [null, {"<id>": {"logprob", "rank", "decoded_token"}, ...}, ...].
nlohmann::ordered_json prompt_logprobs_json(const std::vector<OpenAiScored>& prompt, int32_t top);
// Of a chat {"content":[...],"refusal":null}, else {"tokens":[...],...}.
nlohmann::ordered_json logprobs_json(bool chat, const OpenAiLogprobs& logprobs);

}  // namespace rbee::server
