#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Few queries for each sequence on tensor cores, sm_80 and later: f16 and bf16, queries as keys,
// heads of 64 or 128.
extern const Impl<AttentionArgs> attention_decode_mma;
extern const Impl<PagedAttentionArgs> paged_attention_decode_mma;

}  // namespace rbee::cuda
