#pragma once
// Mirostat (Basu et al. 2021, arXiv 2007.14966): cuts the candidates so that the surprise of the
// drawn tokens stays near a target. Surprise is -log2 of the probability among the tokens kept.

#include <cstdint>

#include "rbee/engine/api/sampling.h"
#include "rbee/engine/text/sampling/candidates.h"

namespace rbee::engine {

class Mirostat {
 public:
  explicit Mirostat(const SamplingParams& params);

  bool on() const { return version_ > 0; }
  // vocab: length of the whole row.
  void cut(Candidates& candidates, int64_t vocab) const;
  // Call it after a draw, with the drawn token's softmax probability.
  void learn(const Candidate& drawn);
  float mu() const { return mu_; }

 private:
  void cut_by_exponent(Candidates& candidates, int64_t vocab) const;

  int32_t version_;
  float tau_, eta_;
  float mu_;  // surprise allowed, bits
};

}  // namespace rbee::engine
