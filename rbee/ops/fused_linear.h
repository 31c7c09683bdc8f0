#pragma once
// Linear layers fused with their neighbours in a transformer's layer. If the device has no fused
// kernel, the plain operations do the same. Weights must be a model's, not results of these
// operations, of rope or of attention (FusedLinearArgs).

#include <optional>
#include <span>
#include <vector>

#include "rbee/ops/activation.h"
#include "rbee/ops/linear.h"
#include "rbee/ops/norm.h"

namespace rbee {

// The input of linear layers: x, or its RMS norm with `norm_weight`.
struct LinearInput {
  LinearInput(Tensor rows) : x(std::move(rows)) {}  // NOLINT: a tensor is such an input
  LinearInput(Tensor rows, Tensor weight, float norm_eps)
      : x(std::move(rows)), norm_weight(std::move(weight)), eps(norm_eps) {}

  Tensor x;            // (rows, in) f32, f16 or bf16, contiguous
  Tensor norm_weight;  // (in), x's dtype; undefined: no norm
  float eps = 0;       // of the norm
};

// As the function of that name in linear.h.
std::vector<Tensor> linear_many(const LinearInput& x,
                                std::span<const LinearWeights* const> weights);

// act(linear(x, gate)) * linear(x, up): (rows, out)
Tensor gated_linear(GateOp op, const LinearInput& x, const LinearWeights& gate,
                    const LinearWeights& up);

// residual + linear(x, weights), or nothing if the device has no kernel for both; residual: (rows,
// out), x's dtype, contiguous
std::optional<Tensor> linear_onto(const Tensor& x, const LinearWeights& weights,
                                  const Tensor& residual);

// The same sum and its RMS norm, or nothing if the device has no kernel for both.
std::optional<SumAndNorm> linear_norm(const Tensor& x, const LinearWeights& weights,
                                      const Tensor& residual, const Tensor& norm_weight, float eps);

}  // namespace rbee
