#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::rocm {

// By matrix instructions: keys and values f16 or bf16, q of their type or f32 (rounded to theirs),
// heads in multiples of 8 elements, up to 256 with MFMA and 128 with WMMA.
extern const Impl<AttentionArgs> attention_mfma;
extern const Impl<PagedAttentionArgs> paged_attention_mfma;
extern const Impl<AttentionArgs> attention_wmma;
extern const Impl<PagedAttentionArgs> paged_attention_wmma;

}  // namespace rbee::rocm
