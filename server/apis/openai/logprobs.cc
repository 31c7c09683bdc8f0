#include "server/apis/openai/logprobs.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "server/wire/json_object.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

// OpenAI's value for a token that cannot come.
constexpr float kLeast = -9999.0f;

Json number(float logprob) {
  return std::max(logprob, kLeast);
}

std::string id_text(const TokenLogprob& token) {
  return cat("token_id:", token.id);
}

Json chat_token(const TokenLogprob& token, bool as_ids) {
  const std::string text = as_ids ? id_text(token) : token.bytes;
  Json bytes = Json::array();
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", text}, {"logprob", number(token.logprob)}, {"bytes", std::move(bytes)}};
}

Json chat_json(const OpenAiLogprobs& logprobs) {
  const bool ids = logprobs.as_ids;
  Json content = Json::array();
  for (const TokenLogprobs& scored : logprobs.tokens) {
    Json entry = chat_token(scored.chosen, ids);
    entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& token : scored.top) {
      entry["top_logprobs"].push_back(chat_token(token, ids));
    }
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// For completions, where only the text tells tokens apart: bytes that are not UTF-8 are written as
// OpenAI writes them.
std::string shown(const std::string& bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  if (is_utf8(bytes)) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

}  // namespace

int64_t character_count(std::string_view text) {
  return std::ranges::count_if(text, begins_character);
}

int64_t character_count(const std::vector<TokenLogprobs>& tokens) {
  int64_t count = 0;
  for (const TokenLogprobs& scored : tokens) count += character_count(scored.chosen.bytes);
  return count;
}

OpenAiLogprobs echoed_logprobs(const std::vector<TokenLogprobs>& prompt, std::string_view echo,
                               int32_t top) {
  OpenAiLogprobs out{.tokens = prompt, .offset = character_count(echo) - character_count(prompt)};
  for (TokenLogprobs& scored : out.tokens) {
    if (std::ssize(scored.top) > top) scored.top.resize(static_cast<size_t>(top));
  }
  return out;
}

Json prompt_logprobs_json(const std::vector<TokenLogprobs>& prompt, int32_t top) {
  Json out = Json::array();
  const auto entry = [](const TokenLogprob& token, int32_t rank) -> Json {
    return {{"logprob", number(token.logprob)}, {"rank", rank}, {"decoded_token", token.bytes}};
  };
  for (const TokenLogprobs& scored : prompt) {
    if (!scored.known) {
      out.push_back(nullptr);
      continue;
    }
    Json tokens = Json::object();
    tokens[std::to_string(scored.chosen.id)] = entry(scored.chosen, scored.rank.value_or(0));
    for (int32_t i = 0; i < std::min<int64_t>(top, std::ssize(scored.top)); ++i) {
      const TokenLogprob& token = scored.top[static_cast<size_t>(i)];
      if (token.id != scored.chosen.id) tokens[std::to_string(token.id)] = entry(token, i + 1);
    }
    out.push_back(std::move(tokens));
  }
  return out;
}

Json logprobs_json(bool chat, const OpenAiLogprobs& logprobs) {
  if (chat) return chat_json(logprobs);
  const auto name = [&](const TokenLogprob& token) {
    return logprobs.as_ids ? id_text(token) : shown(token.bytes);
  };
  Json names = Json::array(), figures = Json::array(), tops = Json::array(), at = Json::array();
  int64_t offset = logprobs.offset;
  for (const TokenLogprobs& scored : logprobs.tokens) {
    names.push_back(name(scored.chosen));
    figures.push_back(scored.known ? number(scored.chosen.logprob) : Json(nullptr));
    Json top = Json::object();
    for (const TokenLogprob& token : scored.top) top[name(token)] = number(token.logprob);
    // As in OpenAI's API: "up to logprobs+1 elements", if the chosen token is not in the top ones.
    top.emplace(name(scored.chosen), number(scored.chosen.logprob));
    tops.push_back(scored.known ? std::move(top) : Json(nullptr));
    at.push_back(std::max<int64_t>(offset, 0));
    offset += character_count(scored.chosen.bytes);
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(figures)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(at)}};
}

}  // namespace rbee::server
