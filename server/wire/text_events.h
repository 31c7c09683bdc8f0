#pragma once
// What happens to a request for text, as replies of every API are told it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::server {

struct TokenLogprob {
  std::string bytes;  // perhaps half a character
  float logprob = 0;
  int32_t id = 0;
};
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top = {};  // the likeliest first
  // Of a prompt's: 1 + the tokens that were likelier, absent of the first, which has no figures.
  std::optional<int32_t> rank = {};
  bool known = true;  // false: such a first one
};

struct StartedEvent {
  std::string job_id;
  std::string model;
  std::string started_at;  // ISO 8601
  uint64_t seed = 0;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;             // of these, found in the cache
  std::vector<int32_t> prompt_ids = {};  // where the request asks for them
};

// How far an answer is: of its prompt, and of its tokens.
struct ProgressEvent {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of these, found in the cache
  int32_t evaluated = 0;      // of the prompt, cached ones included
  double prompt_ms = 0;
  int32_t tokens_out = 0;
  double decode_ms = 0;
};

struct EndEvent {
  int32_t tokens_out = 0;
  int32_t reasoning_tokens = 0;  // of these
  double decode_ms = 0;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of these, found in the cache
  double prompt_ms = 0;
  std::string stop_reason;
  std::string stop_sequence;  // empty: none matched
  uint64_t seed = 0;
  std::optional<bool> complete;  // of an answer that has to have a form: whether it is a whole one
  bool called = false;           // the answer holds calls of functions
  std::optional<int32_t> end_id = {};  // the token that ended it
  // Of its tokens: from arrival to the begin, from there to the first one, from it to the last one.
  double queue_ms = 0, first_token_ms = 0, generation_ms = 0;
};

// A part of an answer that is told apart, in the order of the text.
struct AnswerItem {
  enum class Kind : uint8_t { text, reasoning, call };
  Kind kind = Kind::text;
  std::string text;                        // of a call its arguments, JSON
  std::string call_id, name;               // of a call
  std::vector<TokenLogprobs> scored = {};  // tokens of a text, where the request asks for them
};
// What an item grows by.
struct ItemPiece {
  std::string_view text;
  const std::vector<TokenLogprobs>& scored;  // of a text
};

struct MetricsEvent {
  std::string job_id;
  int32_t tokens_out = 0;
  double decode_ms = 0;
  double tokens_per_second = 0;
  int64_t memory_bytes = 0;
};

}  // namespace rbee::server
