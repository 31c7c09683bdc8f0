// See simdgroup_linear.h: packed weights of blocks of 256.
#include "backends/metal/kernels/simdgroup_linear.h"

namespace rbee {
namespace gpu {

RB_EACH_K_BLOCK(RB_SIMDGROUP_PACKED)

}  // namespace gpu
}  // namespace rbee
