// Attention of many queries by RDNA's matrix instructions (gfx11, gfx12); see attention_tiles.h.
// The matrix units and the registers that feed them limit it.
#if defined(__GFX11__) || defined(__GFX12__)
#include "backends/rocm/kernels/attention_tiles.h"

namespace rbee {
namespace gpu {

RB_ATTENTION_KERNELS(wmma)

}  // namespace gpu
}  // namespace rbee
#endif
