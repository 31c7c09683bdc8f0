#pragma once
// Block-quantised weights as an operand of tile_product().

#include "backends/gpu/portable.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

// Packed ones.
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

// Row-major blocks as files hold them.
template <class Block>
struct LoadBlock {
  const Block* data;
  i64 depth;
  RB_DEVICE float operator()(i64 line, i64 k) const {
    const i64 at = line * depth + k;  // rows are whole blocks
    return dequantize(data[at / Block::kElements], static_cast<int>(at % Block::kElements));
  }
};

}  // namespace gpu
}  // namespace rbee
