#pragma once
// Log probabilities of tokens by the model: the log-softmax of a row of logits as the model gave
// it, before anything that samplers change.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/engine/text/sampling/sampler.h"

namespace rbee::engine {

struct TokenLogprob {
  int32_t id;
  float logprob;
};

struct RowLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // the likeliest tokens, the likeliest first
};

// Of a row as the model gave it, with `count` likeliest tokens.
RowLogprobs logprobs_of(std::span<const float> logits, int32_t chosen, int64_t count);
// With these tokens and the chosen one in place of the likeliest, each once.
RowLogprobs logprobs_of(std::span<const float> logits, int32_t chosen,
                        std::span<const int32_t> shown);
// The same from the row's largest logits, of which there are at least `count`, and the chosen
// token's own. TopLogits::sum is at the scale 1.
struct TokenLogit {
  int32_t id;
  float logit;
};
RowLogprobs logprobs_of(const TopLogits& top_logits, TokenLogit chosen, int64_t count);
// Of a token that is one of the top logits.
RowLogprobs logprobs_of(const TopLogits& top_logits, int32_t chosen, int64_t count);

}  // namespace rbee::engine
