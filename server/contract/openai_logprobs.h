#pragma once
// Log probabilities in OpenAI's forms.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rbee::server {

struct OpenAiToken {
  std::string bytes;  // perhaps half a character
  float logprob = 0;
};
struct OpenAiScored {
  OpenAiToken chosen;
  std::vector<OpenAiToken> top;  // the likeliest first
};
struct OpenAiLogprobs {
  std::vector<OpenAiScored> tokens;
  int64_t offset = 0;  // characters of the answer before these tokens
};

// Characters of the tokens' texts.
int64_t character_count(const std::vector<OpenAiScored>& tokens);
// Of a chat {"content":[...],"refusal":null}, else {"tokens":[...],...}; null without tokens.
nlohmann::ordered_json logprobs_json(bool chat, const OpenAiLogprobs& logprobs);

}  // namespace rbee::server
