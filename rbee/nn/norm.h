#pragma once

#include <optional>

#include "rbee/nn/weight_scope.h"
#include "rbee/ops/collective.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/fused_linear.h"
#include "rbee/ops/norm.h"

namespace rbee::nn {

struct NormOptions {
  int64_t dim = 0;
  float eps = 1e-5f;
  float weight_offset = 0;  // added to the stored weight; 1 in Hugging Face's Gemma
};

// y = x / sqrt(mean(x^2) + eps) * weight over the last axis (Zhang and Sennrich 2019)
class RmsNorm {
 public:
  RmsNorm() = default;
  RmsNorm(const WeightScope& scope, const NormOptions& options)
      : weight_(scope.vector("weight", options.dim, options.weight_offset)), eps_(options.eps) {}

  bool defined() const { return weight_.defined(); }
  Tensor operator()(const Tensor& x) const { return rms_norm(x, weight_, eps_); }
  // x and its norm's weight, for linear layers that compute the norm themselves.
  LinearInput before_linear(const Tensor& x) const { return {x, weight_, eps_}; }
  // residual + the sum of the group's x, and the norm of this sum.
  SumAndNorm add(const Tensor& x, const Tensor& residual, const GroupView& group = {}) const {
    return group.alone() ? add_rms_norm(x, residual, weight_, eps_)
                         : reduce_norm(x, residual, weight_, eps_, group);
  }
  // The same for a linear layer's result, or nothing if the device has no kernel for all of it.
  std::optional<SumAndNorm> add(const Tensor& x, const LinearWeights& layer,
                                const Tensor& residual) const {
    return linear_norm(x, layer, residual, weight_, eps_);
  }

 private:
  Tensor weight_;
  float eps_ = 0;
};

// y = (x - mean) / sqrt(var + eps) * weight + bias over the last axis (Ba et al. 2016)
class LayerNorm {
 public:
  LayerNorm() = default;
  // Takes "weight" and, where the checkpoint has one, "bias".
  LayerNorm(const WeightScope& scope, const NormOptions& options)
      : weight_(scope.vector("weight", options.dim, options.weight_offset)), eps_(options.eps) {
    if (scope.has("bias")) bias_ = scope.vector("bias", options.dim);
  }

  Tensor operator()(const Tensor& x) const { return layer_norm(x, weight_, bias_, eps_); }

 private:
  Tensor weight_;
  Tensor bias_;
  float eps_ = 0;
};

// A layer norm of each head, with a weight for each and no biases.
class HeadLayerNorm {
 public:
  HeadLayerNorm() = default;
  // Takes "weight", (heads, options.dim), for the heads in `own`.
  HeadLayerNorm(const WeightScope& scope, int64_t heads, const group::Range& own,
                const NormOptions& options)
      : weight_(
            scope.stack("weight", Shape{heads, options.dim}).slice(Axis{0}, own.first, own.count)),
        eps_(options.eps) {}

  // x: (tokens, heads, dim)
  Tensor operator()(const Tensor& x) const { return layer_norm(x, {}, {}, eps_) * weight_; }

 private:
  Tensor weight_;
  float eps_ = 0;
};

}  // namespace rbee::nn
