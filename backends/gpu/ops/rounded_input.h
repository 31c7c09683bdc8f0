#pragma once
// The input of a linear layer in the types that its weights are multiplied in.

#include <optional>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/elementwise.h"

namespace rbee::gpu {

// The type that both operands have: 16-bit inputs stay, f32 takes the weight's type, or bf16 where
// the weight is converted anyhow. f32 weights are not rounded.
inline DType product_type(DType x, DType weight) {
  const auto half_width = [](DType t) { return t == DType::f16 || t == DType::bf16; };
  if (half_width(x) || x == weight) return x;
  return half_width(weight) ? weight : DType::bf16;
}

// x (contiguous), and its roundings, each made when first asked for; they go with the object, in
// stream order.
class RoundedInput {
 public:
  RoundedInput(const View& x, Stream& stream) : x_(x), stream_(stream) {}

  // `dtype`: x's, f16 or bf16.
  const void* as(DType dtype) {
    if (dtype == x_.dtype) return x_.data;
    std::optional<Scratch>& held = dtype == DType::f16 ? f16_ : bf16_;
    if (!held) {
      held.emplace(stream_, static_cast<size_t>(x_.numel() * info(dtype).block_bytes));
      View to = x_;
      to.data = held->as<void>();
      to.dtype = dtype;
      cast.run({.x = x_, .y = to}, stream_);
    }
    return held->as<void>();
  }

 private:
  const View& x_;
  Stream& stream_;
  std::optional<Scratch> f16_, bf16_;
};

}  // namespace rbee::gpu
