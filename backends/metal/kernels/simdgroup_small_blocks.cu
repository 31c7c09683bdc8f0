// See simdgroup_linear.h: packed weights of small blocks.
#include "backends/metal/kernels/simdgroup_linear.h"

namespace rbee {
namespace gpu {

RB_EACH_SMALL_BLOCK(RB_SIMDGROUP_PACKED)

}  // namespace gpu
}  // namespace rbee
