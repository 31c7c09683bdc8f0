#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// By wgmma, only for sm_90a: like attention_mma, for heads of up to 128 elements if scores are
// scaled products and nothing else.
extern const Impl<AttentionArgs> attention_wgmma;
extern const Impl<PagedAttentionArgs> paged_attention_wgmma;

}  // namespace rbee::cuda
