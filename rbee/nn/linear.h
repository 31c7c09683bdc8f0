#pragma once

#include <initializer_list>
#include <optional>

#include "rbee/nn/lora.h"
#include "rbee/nn/weight_scope.h"
#include "rbee/ops/collective.h"

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
  // The layer is rows [first_row, first_row + out) of a tensor with total_rows; 0 = all rows. A
  // rank's layer may have no rows; only adapters' files see it then.
  int64_t first_row = 0;
  int64_t total_rows = 0;
  // The rank multiplies only these of the `in` inputs, which is what it has of x: the layer's
  // result is the sum over the ranks of the scope's group. Not with rows of a larger tensor.
  std::optional<group::Range> inputs = {};
  // Adapters may change the layer by rows, and its weights may need x's columns in another order.
  // Callers must use the functions below, not weights().
  bool adapted = false;
  int64_t pair_heads = 0;  // see LoraTarget
};

// The same layer with rows [rows.first, rows.end()) of its own alone.
LinearShape part_of(LinearShape shape, const group::Range& rows);

// y = x * weight^T + bias; x: (rows, in), y: (rows, out), both in the scope's activations
class Linear {
 public:
  Linear() = default;
  // Takes "weight" and, as `bias` says, "bias" of the scope.
  // Throws unsupported if the layer has `inputs` and the matrix an order of its own.
  Linear(const WeightScope& scope, const LinearShape& shape);

  Tensor operator()(const Tensor& x) const { return all_reduce(partial(x), group_); }
  // The same, plus what the rows' adapters add.
  Tensor operator()(const Tensor& x, const LoraRows& rows) const {
    return all_reduce(partial(x, rows), group_);
  }
  // This rank's part of the sum over group(); with a rank alone, the result.
  Tensor partial(const Tensor& x) const;
  Tensor partial(const Tensor& x, const LoraRows& rows) const;
  // Of a layer with `inputs`; else a rank alone.
  const GroupView& group() const { return group_; }
  // The same in f32, whatever x's type is.
  Tensor in_f32(const Tensor& x, const LoraRows& rows) const;
  // What the adapters add; undefined if they add nothing.
  Tensor change(const Tensor& x, const LoraRows& rows) const;
  // The same over the last axis: x (..., in), any strides, to (..., out).
  Tensor over_last(const Tensor& x) const;
  // residual + over_last(x); residual: (..., out), contiguous.
  Tensor onto(const Tensor& residual, const Tensor& x) const;
  // The input that weights() need: x (rows, in) with its columns in order(), times input_scale(),
  // and with the neighbours that share blocks with the layer's inputs, as 0.
  Tensor in_order(const Tensor& x) const;
  const Tensor& order() const { return order_; }  // (in) i32; undefined: as they are
  float input_scale() const { return input_scale_; }
  // Whether the weight comes to the device, and multiplies so many rows there. Callers must use
  // the functions below then, not weights().
  bool visits(int64_t rows) const { return visiting_ && visiting_->visitors->come_for(rows); }
  const VisitingMatrix& visiting() const { return *visiting_; }
  // For layers that share an input, see linear_many().
  const LinearWeights& weights() const { return weights_; }
  const LoraLayer* lora() const { return lora_.get(); }
  // Lets adapters change the layer. Their files call it by the scope's name.
  void let_adapt(const WeightScope& scope, const LinearShape& shape, DType dtype);

 private:
  friend void adjoin(const WeightScope& scope, std::initializer_list<Linear*> layers);
  void take_rows(const WeightScope& scope, const LinearShape& shape);
  void take_inputs(const WeightScope& scope, const LinearShape& shape);
  void take_bias(const WeightScope& scope, const LinearShape& shape, bool here);

  LinearWeights weights_;  // undefined: of no inputs, or no rows
  Tensor order_;
  GroupView group_ = {};
  int64_t out_ = 0;
  group::Range among_inputs_ = {};  // place of x's columns among those that weights_ has
  int64_t padded_in_ = 0;           // 0: they are the same
  float input_scale_ = 1;
  std::shared_ptr<LoraLayer> lora_;                 // null: no adapter may change it
  std::shared_ptr<const VisitingMatrix> visiting_;  // null: it stays where it is
};

// Layers of one input, computed together, plus what the rows' adapters add.
std::vector<Tensor> linear_many(const LayerInput& x, std::span<const Linear* const> layers);

// True if the layers' results are x times their weights: no adapter changes them, x's columns are
// in order, x is not scaled, and no weight visits the device.
bool plain(const LayerInput& x, std::span<const Linear* const> layers);

// act(gate(x)) * up(x) with the same
Tensor gated_linear(GateOp op, const LayerInput& x, const Linear& gate, const Linear& up);

// If the device has memory of its own, places plain weights of layers with one input one after
// another, so that linear_many() computes one product. Does nothing for packed weights and for
// mixed types or biases. `scope`: any of the model's. Throws out_of_memory.
void adjoin(const WeightScope& scope, std::initializer_list<Linear*> layers);

}  // namespace rbee::nn
