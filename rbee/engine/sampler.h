#pragma once
// Chooses the next token from logits. Order: penalties, temperature, top-k, top-p, min-p, draw.
// One sampler per request: it owns the request's random state.
//
// A row of logits is long and nearly all of it cannot be drawn. So the sampler also works from the
// row's largest logits alone, and proves each time that the whole row would give the same token:
// penalties that only lower leave the logits it has not seen below the least one it has; top-k and
// min-p look no further than that; and top-p needs the sum over the row, which is known within an
// error. Where the proof fails it asks for the row.
//
// Under a mask the row is what the mask allows: the leaders that it allows are the first of that.

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "rbee/engine/engine.h"
#include "rbee/engine/token_mask.h"

namespace rbee::engine {

// The largest logits of a row, as rbee/ops/top_k.h finds them.
struct Leaders {
  std::span<const float> values;  // largest first; of equal ones the lower id first
  std::span<const int32_t> ids;
  float sum = 0;      // over the row of exp((x - largest) / temperature); where wanted
  int64_t vocab = 0;  // length of the row
};

class Sampler {
 public:
  // `seed` decides every draw: the same logits and history give the same tokens.
  Sampler(const SamplingParams& params, uint64_t seed);

  // What to find of the next row.
  struct Wanted {
    int64_t leaders = 0;  // how many of the largest will nearly always do; 0: only the row will
    bool sum = false;     // with Leaders::sum
  };
  Wanted wanted(int64_t vocab) const;
  // 1 / temperature, the scale of Leaders::sum.
  float scale() const { return params_.temperature > 0 ? 1 / params_.temperature : 1.0f; }

  // Only these tokens may come next, until it is called again; the bits must stay. At least one is
  // allowed. Without a call all are.
  void allow(const TokenMask& mask) { mask_ = mask; }

  // logits: (vocab), changed in place by mask and penalties. history: the sequence so far, prompt
  // included, oldest first. Throws internal when no logit is finite.
  int32_t sample(std::span<float> logits, std::span<const int32_t> history);
  // The token that sample() above gives for the whole row. Absent when the leaders do not decide
  // it: sample the row then.
  std::optional<int32_t> sample(const Leaders& leaders, std::span<const int32_t> history);

 private:
  struct Candidate {
    float logit;
    int32_t id;
    float probability;  // up to a factor
  };
  struct Repeat {
    int32_t id;
    float count;
  };
  // Of the weights exp((x - largest) / temperature) over a row.
  struct MassBounds {
    double low, high;
  };

  static bool likelier(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
  bool has_penalties() const;
  bool penalties_only_lower() const;
  void count_repeats(std::span<const int32_t> history);
  float penalised(float logit, float count) const;
  void select_top_k(std::span<const float> logits);
  void keep_all(std::span<const float> logits);
  void weigh();
  void normalise();
  void cut_top_p();
  void cut_min_p();
  int32_t draw();

  void apply_mask(std::span<float> logits) const;
  bool allow_leaders(const Leaders& leaders);
  MassBounds bound_mass(const Leaders& leaders) const;
  MassBounds penalise_leaders(const Leaders& leaders);
  size_t count_certain(const Leaders& leaders, bool complete) const;
  bool cut_leaders(size_t certain, bool complete, const MassBounds& mass);
  bool cut_leaders_top_p(const MassBounds& mass);
  bool cut_leaders_min_p(bool seen);
  std::optional<int32_t> draw_with_margin();
  double uniform();

  SamplingParams params_;
  TokenMask mask_;
  std::mt19937_64 random_;
  std::optional<double> undrawn_;      // a number that a draw from leaders did not use
  std::vector<Candidate> candidates_;  // likeliest first once selected
  std::vector<int32_t> recent_;        // scratch of count_repeats
  std::vector<Repeat> repeats_;        // tokens within the penalties' reach, by id
};

// Index of the largest value; the first of equals. NaN is never chosen. -1 when all are NaN.
int32_t argmax(std::span<const float> values);

}  // namespace rbee::engine
