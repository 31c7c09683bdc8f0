// y = x * weight^T + bias for every kind of weight as files hold it, by plain multiply-adds in
// float: for arguments that no faster kernel takes.
#include "backends/gpu/kernels/linear_blocks.h"

namespace rbee {
namespace gpu {

template <class T, class W>
RB_DEVICE void linear(const LinearParams& p) {
  linear_tiles<T>(p, LoadRow<W>{static_cast<const W*>(p.weight), p.depth});
}

#define RB_EACH_X(M, weight, W) \
  M(f32, float, weight, W)      \
  M(f16, f16, weight, W)        \
  M(bf16, bf16, weight, W)

#define RB_PLAIN(x, X, weight, W) \
  RB_KERNEL(linear_##x##_##weight, kTileThreads, LinearParams, (linear<X, W>(p)))
#define RB_PLAIN_WEIGHT(weight, W) RB_EACH_X(RB_PLAIN, weight, W)
RB_EACH_FLOAT_TYPE(RB_PLAIN_WEIGHT)

#define RB_BLOCKS(x, X, weight, W) \
  RB_KERNEL(linear_##x##_##weight, kTileThreads, LinearParams, (linear_blocks<X, W>(p)))
#define RB_BLOCKS_WEIGHT(weight, W) RB_EACH_X(RB_BLOCKS, weight, W)
RB_EACH_BLOCK(RB_BLOCKS_WEIGHT)
RB_BLOCKS_WEIGHT(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
