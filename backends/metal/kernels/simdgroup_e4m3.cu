// See simdgroup_linear.h: packed weights of e4m3 with scales.
#include "backends/metal/kernels/simdgroup_linear.h"

namespace rbee {
namespace gpu {

RB_SIMDGROUP_PACKED(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
