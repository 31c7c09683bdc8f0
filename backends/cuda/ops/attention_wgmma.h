#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// By wgmma, for sm_90a alone: as attention_mma, for heads of up to 128 elements whose scores are
// nothing but scaled products.
extern const Impl<AttentionArgs> attention_wgmma;
extern const Impl<PagedAttentionArgs> paged_attention_wgmma;

}  // namespace rbee::cuda
