#pragma once

#include "backends/api/args_attention.h"
#include "rbee/ops/fused_linear.h"
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

// Rotates q and k, appends the rotated keys and v to the caches (kv_append_ of
// rbee/ops/attention.h), and gives the rotated q. One launch if the device has such a kernel.
//   q: (tokens, heads, head_dim)   k, v: (tokens, kv_heads, head_dim), of q's dtype
//   positions, slots: (tokens) i32
//   k_cache, v_cache: (blocks, kv_heads, block_size, head_dim) of a cache type
struct RopeAppend {
  const Tensor &q, &k, &v;
  const Tensor &cos, &sin;
  const Tensor &positions, &slots;
  Tensor &k_cache, &v_cache;
  RopeLayout layout = RopeLayout::half;
};
Tensor rope_append_(const RopeAppend& operands);

// rope_append_ of linear layers' results. One launch if the device has such a kernel. Weights,
// positions and slots must not be results of a layer's operations (QkvAppendArgs).
//   input: (tokens, in)   q: (heads * head_dim, in)   k, v: (kv_heads * head_dim, in)
struct QkvAppend {
  const LinearInput& input;
  const LinearWeights &q, &k, &v;
  int64_t heads = 0;
  const Tensor &cos, &sin;
  const Tensor &positions, &slots;
  Tensor &k_cache, &v_cache;
  RopeLayout layout = RopeLayout::half;
};
Tensor qkv_append_(const QkvAppend& operands);

}  // namespace rbee
