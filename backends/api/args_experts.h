#pragma once
// Mixtures of experts (Shazeer et al. 2017, "Outrageously Large Neural Networks"): choosing each
// token's experts, their linear layers, and the sum of their results.

#include <span>

#include "backends/api/view.h"

namespace rbee {

// The most experts that a layer can have.
inline constexpr int64_t kMaxExperts = 1024;

enum class ExpertScore : uint8_t { softmax, sigmoid };
// The score of a group of experts: its best expert, or the sum of its two best.
enum class GroupScore : uint8_t { best, two_best };

// score = softmax or sigmoid of the logits. Chooses the k experts with the highest score + bias, in
// that order; of equal ones, the lower first. weight = their score [/ sum of the chosen] * scale.
// With groups, only the experts of the `kept_groups` best groups take part (DeepSeek-AI 2024,
// "DeepSeek-V2", section 2.2.2). A score that is not a number counts as the lowest.
//   logits: (tokens, experts) f32   bias: (experts) f32; absent = none
//   ids: (tokens, k) i32            weights: (tokens, k) f32
// All contiguous.
struct RouteExpertsArgs {
  View logits, bias, ids, weights;
  ExpertScore score = ExpertScore::softmax;
  GroupScore group_score = GroupScore::best;
  int32_t groups = 1;  // of neighbouring experts, all of one size
  int32_t kept_groups = 1;
  bool normalise = false;
  float scale = 1;
};

// One of several stacks of weights that share an input.
struct ExpertPart {
  View weight;  // (experts, out, in): plain, a block type, or packed expert after expert
  View bias;    // (experts, out), y's dtype; absent = none
  View y;       // (tokens * k, out)
};

// y[t * k + j] = x' * weight[ids[t, j]]^T + bias[ids[t, j]], where x' is row t of x or, if x has a
// row for each choice, row t * k + j. Everything is contiguous.
struct ExpertLinearArgs {
  View x;                             // (tokens or tokens * k, in) f32, f16 or bf16
  View ids;                           // (tokens, k) i32, in range; CPUs: -1, and y's row is 0
  std::span<const ExpertPart> parts;  // at least one
};

// y[t] = sum over j of weights[t, j] * x[t * k + j]
//   x: (tokens * k, dim)   weights: (tokens, k) f32   y: (tokens, dim), x's dtype; contiguous
struct ExpertSumArgs {
  View x, weights, y;
};

}  // namespace rbee
