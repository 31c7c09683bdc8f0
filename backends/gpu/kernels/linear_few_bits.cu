// As linear_packed.cu and linear_plain.cu: weights of formats of few bits, packed and as files hold
// them.
#include "backends/gpu/kernels/linear_tiles.h"
#include "backends/gpu/kernels/load_packed.h"

namespace rbee {
namespace gpu {

template <class T, class Block>
RB_DEVICE void linear_packed(const LinearParams& p) {
  linear_tiles<T>(
      p, LoadPacked<Block>{static_cast<const u8*>(p.weight), packed_layout<Block>(p.depth)});
}
template <class T, class Block>
RB_DEVICE void linear_blocks(const LinearParams& p) {
  linear_tiles<T>(p, LoadBlock<Block>{static_cast<const Block*>(p.weight), p.depth});
}

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
