// Like linear_packed.cu and linear_plain.cu, for weights of formats of few bits, packed and as
// files hold them.
#include "backends/gpu/kernels/linear_blocks.h"

namespace rbee {
namespace gpu {

#define RB_LINEAR(x, X, weight, Block)                                \
  RB_KERNEL(linear_packed_##x##_##weight, kTileThreads, LinearParams, \
            (linear_packed<X, Block>(p)))                             \
  RB_KERNEL(linear_##x##_##weight, kTileThreads, LinearParams, (linear_blocks<X, Block>(p)))
#define RB_EACH_X(weight, Block)       \
  RB_LINEAR(f32, float, weight, Block) \
  RB_LINEAR(f16, f16, weight, Block)   \
  RB_LINEAR(bf16, bf16, weight, Block)
RB_EACH_FEW_BITS(RB_EACH_X)

}  // namespace gpu
}  // namespace rbee
