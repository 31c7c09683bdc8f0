#pragma once

#include "rbee/nn/linear.h"
#include "rbee/nn/norm.h"

namespace rbee::nn {

// The residual stream of a transformer. A branch that was added stays pending until the next norm,
// so that the sum and the norm are one kernel, unless the layer that ends the branch adds it; where
// nothing follows that layer it is pending itself, and may be part of that kernel too.
class Residual {
 public:
  // x: (tokens, dim)
  explicit Residual(Tensor x, LoraRows lora = {}) : sum_(std::move(x)), lora_(std::move(lora)) {}

  void add(const Tensor& branch);
  // Adds scale * layer(x). The layer outlives the stream.
  void add(const Linear& layer, const Tensor& x, float scale = 1);
  Tensor norm(const RmsNorm& norm);
  Tensor norm(const LayerNorm& norm) { return norm(value()); }
  // The same for linear layers, which may take the norm themselves.
  LayerInput normed_input(const RmsNorm& norm);
  // Rows made of these, which take the same adapters.
  LayerInput input(Tensor x) const { return {std::move(x), lora_}; }
  // Goes on with the rows picked by `rows`: (n) i32 only; undefined = all.
  void keep_rows(const Tensor& rows);
  const Tensor& value();

 private:
  // Makes pending_ of what is to be computed yet.
  void evaluate();

  Tensor sum_;
  Tensor pending_;
  const LinearWeights* layer_ = nullptr;  // pending: its product with layer_x_
  Tensor layer_x_;
  LoraRows lora_;
};

}  // namespace rbee::nn
