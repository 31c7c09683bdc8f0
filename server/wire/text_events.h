#pragma once
// The events of a text request, for the replies of every API.

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
  std::vector<TokenLogprob> top = {};  // likeliest first
  // For a prompt token: 1 + the number of likelier tokens. Absent for the first, which has no
  // figures.
  std::optional<int32_t> rank = {};
  bool known = true;  // false: such a first token
};

struct StartedEvent {
  std::string job_id;
  std::string model;
  std::string started_at;  // ISO 8601
  uint64_t seed = 0;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;             // of these, found in the cache
  std::vector<int32_t> prompt_ids = {};  // if the request asks for them
};

// Progress of the prompt and of the answer.
struct ProgressEvent {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of these, found in the cache
  int32_t evaluated = 0;      // prompt tokens, cached ones included
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
  std::optional<bool> complete;        // for a constrained answer: whether it is complete
  bool called = false;                 // the answer contains function calls
  std::optional<int32_t> end_id = {};  // the token that ended it
  // Times: arrival to begin, begin to first token, first to last token.
  double queue_ms = 0, first_token_ms = 0, generation_ms = 0;
};

// A part of an answer, in the order of the text.
struct AnswerItem {
  enum class Kind : uint8_t { text, reasoning, call };
  Kind kind = Kind::text;
  std::string text;                        // of a call: its arguments, JSON
  std::string call_id, name;               // of a call
  std::vector<TokenLogprobs> scored = {};  // tokens of a text, if requested
};
// A new piece of an item.
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
