#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::metal {

// Simdgroup matrices (Apple7 and later): heads of up to 256 elements, multiples of 8, over keys and
// values in f32, f16, bf16, f8e4m3 or pages of q8_0 that can be read 16 bytes at a time, 8 of 8-bit
// ones. In float; q of f64 is refused.
extern const Impl<AttentionArgs> attention_simdgroup;
extern const Impl<PagedAttentionArgs> paged_attention_simdgroup;

}  // namespace rbee::metal
