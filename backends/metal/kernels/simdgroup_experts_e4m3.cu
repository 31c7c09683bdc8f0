// See simdgroup_experts.h: packed weights of e4m3 with scales.
#include "backends/metal/kernels/simdgroup_experts.h"

namespace rbee {
namespace gpu {

RB_PACKED_EXPERTS(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
