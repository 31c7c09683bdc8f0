// Attention of many queries by CDNA's matrix instructions (gfx908, gfx90a, gfx942, gfx950); see
// attention_tiles.h. Tiles of 32 queries a wave halve the reads of shared memory, which limit
// it beside the matrix units.
#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
#include "backends/rocm/kernels/attention_tiles.h"

namespace rbee {
namespace gpu {

RB_ATTENTION_KERNELS(mfma)

}  // namespace gpu
}  // namespace rbee
#endif
