#pragma once
// Mixtures of experts: the choice of experts, linear layers of the chosen ones, and their sum.

#include <functional>
#include <span>
#include <vector>

#include "backends/api/args_experts.h"
#include "rbee/ops/linear.h"

namespace rbee {

struct RouteOptions {
  int64_t chosen = 1;  // experts of a token
  ExpertScore score = ExpertScore::softmax;
  bool normalise = false;  // the chosen experts' scores add up to `scale`
  float scale = 1;
  int64_t groups = 1;       // of neighbouring experts, all of one size; 1 = no groups
  int64_t kept_groups = 1;  // whose experts take part
  GroupScore group_score = GroupScore::best;
  Tensor bias;  // (experts) f32, counts for the choice alone; undefined = none
};

struct Routing {
  Tensor ids;      // (tokens, chosen) i32, the best expert first
  Tensor weights;  // (tokens, chosen) f32
};

// See RouteExpertsArgs. logits: (tokens, experts) f32, contiguous. Throws invalid_argument for more
// than 1024 experts, more chosen than take part, and groups that do not fit.
Routing route_experts(const Tensor& logits, const RouteOptions& options);

// Applies the linear layers of the experts that each token has chosen, computed together. Gives one
// result for each layer: (tokens * chosen, out), the choices of a token one after another.
//   x: (tokens or tokens * chosen, in) f32, f16 or bf16, contiguous: a row for each token or choice
//   ids: (tokens, chosen) i32; if the host can read ids, one out of range throws invalid_argument.
//   On CPUs -1 is no expert, and its rows of the results are zeros
//   layers: weight (experts, out, in), plain, a block type, or of pack_experts; bias (experts, out)
//   in x's dtype, or undefined
std::vector<Tensor> expert_linear(const Tensor& x, const Tensor& ids,
                                  std::span<const LinearWeights* const> layers);

// y[t] = sum over j of weights[t, j] * x[t * chosen + j]
//   x: (tokens * chosen, dim) f32, f16 or bf16, contiguous   weights: (tokens, chosen) f32
Tensor expert_sum(const Tensor& x, const Tensor& weights);

// The matrices of `count` experts, (out, in) of one shape and type each, as one weight (count, out,
// in), each packed for the device unless `layout` says plain. Calls matrix(e) for one expert after
// another, and has read one result before it asks for the next.
enum class ExpertLayout : uint8_t { packed, plain };
Tensor pack_experts(int64_t count, const std::function<Tensor(int64_t)>& matrix,
                    ExpertLayout layout = ExpertLayout::packed);

}  // namespace rbee
