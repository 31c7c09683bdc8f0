// See simdgroup_linear.h: packed weights of few bits.
#include "backends/metal/kernels/simdgroup_linear.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_SIMDGROUP_PACKED)

}  // namespace gpu
}  // namespace rbee
