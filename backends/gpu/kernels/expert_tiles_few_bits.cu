// Products of many choices with packed weights of formats of few bits.
#include "backends/gpu/kernels/expert_tiles_packed.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_EXPERT_TILES)

}  // namespace gpu
}  // namespace rbee
