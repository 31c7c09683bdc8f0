#pragma once

#include "backends/api/args_attention.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

// Rotary position embedding (Su et al. 2021, section 3.2.2); x keeps its shape and dtype.
//   x: (tokens, heads, head_dim)   cos, sin: (positions, rot / 2) f32, rot <= head_dim
//   positions: (tokens) i32, rows of cos and sin
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions,
            RopeLayout layout);

// The three layouts of the candle kernels: x (batch, heads, time, head_dim) in halves, the same
// interleaved, and (batch, time, heads, head_dim) in halves. Row of cos and sin = time.
Tensor rope_half(const Tensor& x, const Tensor& cos, const Tensor& sin);
Tensor rope_interleaved(const Tensor& x, const Tensor& cos, const Tensor& sin);
Tensor rope_thd(const Tensor& x, const Tensor& cos, const Tensor& sin);

}  // namespace rbee
