// y = the values of quantised blocks, as any float type. Eight elements a thread, which share a
// scale; limited by memory.
#include "backends/gpu/tile.h"
#include "backends/shared/code_book_blocks.h"
#include "backends/shared/elementwise_params.h"

namespace rbee {
namespace gpu {

constexpr int kRun = 8;  // divides every format's group

template <class Block, class Y>
RB_DEVICE void dequantize_run(const DequantizeParams& p) {
  const u32 index = (block_x() * kTileThreads + thread_x()) * kRun;
  if (index >= p.space.count) return;
  const u64 element = p.first + index;
  const Block& block = static_cast<const Block*>(p.x)[element / Block::kElements];
  const int at = static_cast<int>(element % Block::kElements);
  const BlockScale scale = scale_of(block, at / Block::kGroup);
  TileOf<Y, kRun> tile;
#pragma unroll
  for (int k = 0; k < kRun; ++k) {
    tile.values[k] = convert<Y>(apply_scale(scale, quant_of(block, at + k)));
  }
  Y* y = static_cast<Y*>(p.y);
  if (p.space.packed != 0) {
    *reinterpret_cast<TileOf<Y, kRun>*>(y + strided_offsets(p.space, index).at[0]) = tile;
    return;
  }
#pragma unroll
  for (int k = 0; k < kRun; ++k) y[strided_offsets(p.space, index + k).at[0]] = tile.values[k];
}

// The order of kFloats in ops/cast.cc.
template <class Block>
RB_DEVICE void dequantize(const DequantizeParams& p) {
  switch (p.to) {
    case 0:
      return dequantize_run<Block, float>(p);
    case 1:
      return dequantize_run<Block, f16>(p);
    case 2:
      return dequantize_run<Block, bf16>(p);
    case 3:
      return dequantize_run<Block, double>(p);
    default:
      return dequantize_run<Block, f8e4m3>(p);
  }
}

#define RB_DEQUANTIZE(dtype, Block) \
  RB_KERNEL(dequantize_##dtype, kTileThreads, DequantizeParams, (dequantize<Block>(p)))
RB_EACH_BLOCK(RB_DEQUANTIZE)
RB_DEQUANTIZE(f8_g128, BlockF8_G128)
RB_EACH_FEW_BITS(RB_DEQUANTIZE)

}  // namespace gpu
}  // namespace rbee
