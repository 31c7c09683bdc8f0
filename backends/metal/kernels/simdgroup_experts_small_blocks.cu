// See simdgroup_experts.h: packed weights of blocks of 32.
#include "backends/metal/kernels/simdgroup_experts.h"

namespace rbee {
namespace gpu {

RB_EACH_SMALL_BLOCK(RB_PACKED_EXPERTS)

}  // namespace gpu
}  // namespace rbee
