// See simdgroup_experts.h: plain weights.
#include "backends/metal/kernels/simdgroup_experts.h"

namespace rbee {
namespace gpu {

#define RB_PLAIN_EXPERTS(weight, W)                                 \
  RB_SIMDGROUP_EXPERTS(experts_plain, float, f32, float, weight, W) \
  RB_SIMDGROUP_EXPERTS(experts_plain, float, bf16, bf16, weight, W)
RB_EACH_FLOAT(RB_PLAIN_EXPERTS)
RB_SIMDGROUP_EXPERTS(experts_plain, float, f16, f16, f32, float)
RB_SIMDGROUP_EXPERTS(experts_plain, f16, f16, f16, f16, f16)
RB_SIMDGROUP_EXPERTS(experts_plain, float, f16, f16, bf16, bf16)

}  // namespace gpu
}  // namespace rbee
