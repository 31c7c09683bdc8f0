#pragma once
// Checks that rope.cc and paged_attention.cc define and rope_append.cc shares.

#include "rbee/tensor/tensor.h"

namespace rbee {

// x: (tokens, heads, head_dim) can be rotated by these tables at these positions.
void check_rotation(const char* op, const Tensor& x, const Tensor& cos, const Tensor& sin,
                    const Tensor& positions);

// k and v can be written into these caches at these slots.
void check_append(const char* op, const Tensor& k, const Tensor& v, const Tensor& slots,
                  const Tensor& k_cache, const Tensor& v_cache);

}  // namespace rbee
