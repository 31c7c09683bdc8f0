// Attention of many queries by RDNA's matrix instructions (gfx11, gfx12); see attention_tiles.h.
// The matrix units and the registers that feed them limit it.
#if defined(__GFX11__) || defined(__GFX12__)
#include "backends/rocm/kernels/attention_tiles.h"

namespace rbee {
namespace gpu {

// attention_wmma_<dtype>_d<largest head>[_shaped]
#define RB_ATTENTION(dtype, T, dim)                                                            \
  RB_KERNEL(attention_wmma_##dtype##_d##dim, AmdTile<dim>::kThreads, AttentionParams,          \
            (attention_amd<T, T, dim, false>(p)))                                              \
  RB_KERNEL(attention_wmma_##dtype##_d##dim##_shaped, AmdTile<dim>::kThreads, AttentionParams, \
            (attention_amd<T, T, dim, true>(p)))
RB_ATTENTION(f16, f16, 64)
RB_ATTENTION(f16, f16, 128)
RB_ATTENTION(f16, f16, 256)
RB_ATTENTION(bf16, bf16, 64)
RB_ATTENTION(bf16, bf16, 128)
RB_ATTENTION(bf16, bf16, 256)

// Over 8-bit caches, as f16.
#define RB_ATTENTION_NARROW(dtype, KV, dim)                                           \
  RB_KERNEL(attention_wmma_##dtype##_d##dim, AmdTile<dim>::kThreads, AttentionParams, \
            (attention_amd<f16, KV, dim, false>(p)))
RB_ATTENTION_NARROW(f8e4m3, f8e4m3, 64)
RB_ATTENTION_NARROW(f8e4m3, f8e4m3, 128)
RB_ATTENTION_NARROW(f8e4m3, f8e4m3, 256)
RB_ATTENTION_NARROW(q8_0, PageCode, 64)
RB_ATTENTION_NARROW(q8_0, PageCode, 128)
RB_ATTENTION_NARROW(q8_0, PageCode, 256)

}  // namespace gpu
}  // namespace rbee
#endif
