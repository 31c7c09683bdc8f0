// See simdgroup_experts.h: packed weights of few bits.
#include "backends/metal/kernels/simdgroup_experts.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_PACKED_EXPERTS)

}  // namespace gpu
}  // namespace rbee
