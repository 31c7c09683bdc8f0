#pragma once
// Chooses the next token from logits. Order: penalties, temperature, top-k, top-p, min-p, draw.
// One sampler per request: it owns the request's random state.

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "rbee/engine/engine.h"

namespace rbee::engine {

class Sampler {
 public:
  // `seed` decides every draw: the same logits and history give the same tokens.
  Sampler(const SamplingParams& params, uint64_t seed);

  // logits: (vocab), changed in place by the penalties. history: the sequence so far, prompt
  // included, oldest first. Throws internal when no logit is finite.
  int32_t sample(std::span<float> logits, std::span<const int32_t> history);

 private:
  struct Candidate {
    float logit;
    int32_t id;
    float probability;
  };

  void apply_penalties(std::span<float> logits, std::span<const int32_t> history);
  void select_top_k(std::span<const float> logits);
  void keep_all(std::span<const float> logits);
  void normalise();
  void cut_top_p();
  void cut_min_p();
  int32_t draw();

  SamplingParams params_;
  std::mt19937_64 random_;
  std::vector<Candidate> candidates_;  // likeliest first once selected
  std::vector<int32_t> recent_;        // scratch of apply_penalties
};

// Index of the largest value; the first of equals. NaN is never chosen. -1 when all are NaN.
int32_t argmax(std::span<const float> values);

}  // namespace rbee::engine
