#pragma once
// Log probabilities by the model: the log-softmax of its logits before samplers change them. All
// throw internal if a row has no finite logit, or a token that is asked for has NaN.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/engine/text/sampling/sampler.h"

namespace rbee::engine {

struct Logprob {
  int32_t id;
  float logprob;
};

struct RowLogprobs {
  Logprob chosen;
  std::vector<Logprob> top;  // the likeliest tokens, in order
};

// logits: the model's row. count: how many of the likeliest tokens.
RowLogprobs logprobs_of(std::span<const float> logits, int32_t chosen, int64_t count);
// With the tokens of `shown` and the chosen one in place of the likeliest, each once.
RowLogprobs logprobs_of(std::span<const float> logits, int32_t chosen,
                        std::span<const int32_t> shown);
// The same from the row's largest logits, at least `count` of them, and the chosen token's logit.
// TopLogits::sum must be at the scale 1.
struct TokenLogit {
  int32_t id;
  float logit;
};
RowLogprobs logprobs_of(const TopLogits& top_logits, TokenLogit chosen, int64_t count);
// `chosen` must be among the top logits.
RowLogprobs logprobs_of(const TopLogits& top_logits, int32_t chosen, int64_t count);

}  // namespace rbee::engine
