#pragma once

#include <initializer_list>

#include "rbee/nn/lora.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::nn {

enum class Bias : uint8_t {
  none,
  optional,  // if the checkpoint has one
  required,
};

struct LinearShape {
  int64_t in = 0;
  int64_t out = 0;
  Bias bias = Bias::none;
  // The layer is rows [first_row, first_row + out) of a tensor with total_rows; 0 = all rows.
  int64_t first_row = 0;
  int64_t total_rows = 0;
  // Adapters may change the layer by rows, and its weights may need x's columns in another order.
  // Callers must use the functions below, not weights().
  bool adapted = false;
  int64_t pair_heads = 0;  // see LoraTarget
};

// y = x * weight^T + bias; x: (rows, in), y: (rows, out), both in the scope's activations
class Linear {
 public:
  Linear() = default;
  // Takes "weight" and, as `bias` says, "bias" of the scope.
  Linear(const WeightScope& scope, const LinearShape& shape);

  Tensor operator()(const Tensor& x) const { return linear(in_order(x), weights_); }
  // The same, plus what the rows' adapters add.
  Tensor operator()(const Tensor& x, const LoraRows& rows) const;
  // The same in f32, whatever x's type is.
  Tensor in_f32(const Tensor& x, const LoraRows& rows) const;
  // What the adapters add; undefined if they add nothing.
  Tensor change(const Tensor& x, const LoraRows& rows) const;
  // The same over the last axis: x (..., in), any strides, to (..., out).
  Tensor over_last(const Tensor& x) const;
  // residual + over_last(x); residual: (..., out), contiguous.
  Tensor onto(const Tensor& residual, const Tensor& x) const;
  // The input that weights() need: x (rows, in) with its columns in order(), times input_scale().
  Tensor in_order(const Tensor& x) const;
  const Tensor& order() const { return order_; }  // (in) i32; undefined: as they are
  float input_scale() const { return input_scale_; }
  // For layers that share an input, see linear_many().
  const LinearWeights& weights() const { return weights_; }
  const LoraLayer* lora() const { return lora_.get(); }
  // Lets adapters change the layer. Their files call it by the scope's name.
  void let_adapt(const WeightScope& scope, const LinearShape& shape, DType dtype);

 private:
  friend void adjoin(const WeightScope& scope, std::initializer_list<Linear*> layers);

  LinearWeights weights_;
  Tensor order_;
  float input_scale_ = 1;
  std::shared_ptr<LoraLayer> lora_;  // null: no adapter may change it
};

// Layers of one input, computed together, plus what the rows' adapters add.
std::vector<Tensor> linear_many(const LayerInput& x, std::span<const Linear* const> layers);

// True if the layers' results are x times their weights: no adapter changes them, x's columns are
// in order, and x is not scaled.
bool plain(const LayerInput& x, std::span<const Linear* const> layers);

// act(gate(x)) * up(x) with the same
Tensor gated_linear(GateOp op, const LayerInput& x, const Linear& gate, const Linear& up);

// If the device has memory of its own, places plain weights of layers with one input one after
// another, so that linear_many() computes one product. Does nothing for packed weights and for
// mixed types or biases. `scope`: any of the model's. Throws out_of_memory.
void adjoin(const WeightScope& scope, std::initializer_list<Linear*> layers);

}  // namespace rbee::nn
