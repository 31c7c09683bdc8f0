#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// By mma.sync, for devices of sm_80 and later whose blocks have kLatentSharedBytes of shared
// memory: what gpu::refuse_rows accepts, heads of up to 576 elements.
extern const Impl<PagedAttentionArgs> attention_latent_mma;
inline constexpr uint32_t kLatentSharedBytes =
    (64 + 2 * 32) * (576 + 8) * 2 + 64 * (32 + 8) * 2 + 3 * 64 * 4;

}  // namespace rbee::cuda
