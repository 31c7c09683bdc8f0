// See simdgroup_experts.h: packed weights of blocks of 256.
#include "backends/metal/kernels/simdgroup_experts.h"

namespace rbee {
namespace gpu {

RB_EACH_K_BLOCK(RB_PACKED_EXPERTS)

}  // namespace gpu
}  // namespace rbee
