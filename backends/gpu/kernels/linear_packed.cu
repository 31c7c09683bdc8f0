// y = x * weight^T + bias for packed weights, by plain multiply-adds in float: for GPUs without
// matrix instructions.
#include "backends/gpu/kernels/linear_tiles.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

template <class Block>
struct LoadPacked {
  const u8* data;
  PackedLayout layout;
  RB_DEVICE float operator()(i64 line, i64 k) const {
    const u8* row = data + line * layout.row_bytes;
    const PackedScale scale = packed_scale<Block>(row, layout, k / 32);
    const bool second = k / 16 % 2 != 0;  // chosen, not indexed: an index would cost scratch memory
    const u32 codes = packed_codes<Block>(row, layout, k / 4 * 4);
    return apply_scale(
        BlockScale{second ? scale.d[1] : scale.d[0], second ? scale.m[1] : scale.m[0]},
        packed_quant<Block>(codes, static_cast<int>(k % 4)));
  }
};

template <class T, class Block>
RB_DEVICE void linear_packed(const LinearParams& p) {
  linear_tiles<T>(
      p, LoadPacked<Block>{static_cast<const u8*>(p.weight), packed_layout<Block>(p.depth)});
}

#define RB_PACKED(weight, Block)                                     \
  RB_KERNEL(linear_packed_f32_##weight, kTileThreads, LinearParams,  \
            (linear_packed<float, Block>(p)))                        \
  RB_KERNEL(linear_packed_f16_##weight, kTileThreads, LinearParams,  \
            (linear_packed<f16, Block>(p)))                          \
  RB_KERNEL(linear_packed_bf16_##weight, kTileThreads, LinearParams, \
            (linear_packed<bf16, Block>(p)))
RB_EACH_BLOCK(RB_PACKED)

}  // namespace gpu
}  // namespace rbee
