// y = x * weight^T + bias for packed weights, by plain multiply-adds in float: for GPUs without
// matrix instructions.
#include "backends/gpu/kernels/linear_blocks.h"

namespace rbee {
namespace gpu {

#define RB_PACKED(weight, Block)                                     \
  RB_KERNEL(linear_packed_f32_##weight, kTileThreads, LinearParams,  \
            (linear_packed<float, Block>(p)))                        \
  RB_KERNEL(linear_packed_f16_##weight, kTileThreads, LinearParams,  \
            (linear_packed<f16, Block>(p)))                          \
  RB_KERNEL(linear_packed_bf16_##weight, kTileThreads, LinearParams, \
            (linear_packed<bf16, Block>(p)))
RB_EACH_BLOCK(RB_PACKED)
RB_PACKED(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
