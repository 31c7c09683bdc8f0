#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// By mma.sync, for devices of sm_80 and later: keys and values f16 or bf16, q of their type or f32
// (rounded to theirs), heads of up to 256 elements in multiples of 8.
extern const Impl<AttentionArgs> attention_mma;
extern const Impl<PagedAttentionArgs> paged_attention_mma;

}  // namespace rbee::cuda
