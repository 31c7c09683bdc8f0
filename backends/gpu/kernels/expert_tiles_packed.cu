// Products of many choices with packed weights.
#include "backends/gpu/kernels/expert_tiles_packed.h"

namespace rbee {
namespace gpu {

RB_EACH_BLOCK(RB_EXPERT_TILES)
RB_EXPERT_TILES(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
