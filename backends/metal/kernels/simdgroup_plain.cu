// See simdgroup_linear.h: plain weights.
#include "backends/metal/kernels/simdgroup_linear.h"

namespace rbee {
namespace gpu {

#define RB_PLAIN(weight, W)                                   \
  RB_SIMDGROUP(simdgroup_plain, float, f32, float, weight, W) \
  RB_SIMDGROUP(simdgroup_plain, float, bf16, bf16, weight, W)
RB_EACH_FLOAT(RB_PLAIN)
RB_PLAIN(f8e4m3, f8e4m3)
RB_SIMDGROUP(simdgroup_plain, float, f16, f16, f32, float)
RB_SIMDGROUP(simdgroup_plain, f16, f16, f16, f16, f16)
RB_SIMDGROUP(simdgroup_plain, float, f16, f16, bf16, bf16)
RB_SIMDGROUP(simdgroup_plain, f16, f16, f16, f8e4m3, f8e4m3)

}  // namespace gpu
}  // namespace rbee
