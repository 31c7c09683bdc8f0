#pragma once
// Linear layers over plain, block-quantised and packed weights.

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "rbee/tensor/tensor.h"

namespace rbee {

// y = x * weight^T + bias
//   x: (rows, in) f32, f16 or bf16, contiguous   weight: (out, in) any dtype, plain or packed
//   bias: (out), x's dtype, or undefined         y: (rows, out), x's dtype
// x may be rounded to `may_round_to` (LinearArgs); f32: it may not.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              DType may_round_to = DType::f32);

struct LinearWeights {
  Tensor weight;  // (out, in)
  Tensor bias;    // (out) or undefined
  // The weight and the bias follow those of the layer before this one in memory, in every list of
  // layers.
  bool adjoins = false;
  // Of inputs that other layers do not have: see LinearArgs. f32: they may not be rounded.
  DType may_round_to = DType::f32;
};
inline Tensor linear(const Tensor& x, const LinearWeights& layer) {
  return linear(x, layer.weight, layer.bias, layer.may_round_to);
}
// Several linear layers of one input, computed together; one result for each weight. If all but the
// first adjoin, results of several rows are columns of one tensor.
std::vector<Tensor> linear_many(const Tensor& x, std::span<const LinearWeights* const> weights);

// The weight in the layout that this device's linear kernels read fastest. If that is the plain
// layout, the result shares the plain weight. Call it once, at load.
//
// Calls `on_packed` when it has packed the first `rows` of the weight and will not read them again,
// in steps of a few MiB if the layout allows it. So a mapped file need not be in memory as a whole.
Tensor pack_weight(const Tensor& weight, const std::function<void(int64_t rows)>& on_packed = {});

}  // namespace rbee
