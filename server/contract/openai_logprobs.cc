#include "server/contract/openai_logprobs.h"

#include <algorithm>

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

// What OpenAI gives where a token cannot come.
constexpr float kLeast = -9999.0f;

Json number(float logprob) {
  return std::max(logprob, kLeast);
}

Json chat_token(const OpenAiToken& token) {
  Json bytes = Json::array();
  for (const char byte : token.bytes) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", token.bytes}, {"logprob", number(token.logprob)}, {"bytes", std::move(bytes)}};
}

Json chat_json(const std::vector<OpenAiScored>& tokens) {
  Json content = Json::array();
  for (const OpenAiScored& scored : tokens) {
    Json entry = chat_token(scored.chosen);
    entry["top_logprobs"] = Json::array();
    for (const OpenAiToken& token : scored.top) entry["top_logprobs"].push_back(chat_token(token));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

}  // namespace

int64_t character_count(const std::vector<OpenAiScored>& tokens) {
  int64_t count = 0;
  for (const OpenAiScored& scored : tokens) {
    count += std::ranges::count_if(scored.chosen.bytes, begins_character);
  }
  return count;
}

Json logprobs_json(bool chat, const OpenAiLogprobs& logprobs) {
  if (logprobs.tokens.empty()) return nullptr;
  if (chat) return chat_json(logprobs.tokens);
  Json names = Json::array(), figures = Json::array(), tops = Json::array(), at = Json::array();
  int64_t offset = logprobs.offset;
  for (const OpenAiScored& scored : logprobs.tokens) {
    names.push_back(scored.chosen.bytes);
    figures.push_back(number(scored.chosen.logprob));
    Json top = Json::object();
    for (const OpenAiToken& token : scored.top) top[token.bytes] = number(token.logprob);
    tops.push_back(std::move(top));
    at.push_back(offset);
    offset += std::ranges::count_if(scored.chosen.bytes, begins_character);
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(figures)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(at)}};
}

}  // namespace rbee::server
