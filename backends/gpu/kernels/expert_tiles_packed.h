#pragma once
// Products of many choices with packed weights: RB_EXPERT_TILES(dtype, Block) makes the kernels of
// a block type.
#include "backends/gpu/kernels/expert_tiles.h"
#include "backends/gpu/kernels/load_packed.h"

namespace rbee {
namespace gpu {

template <class T, class Block>
RB_DEVICE void packed_tiles(const ExpertTilesParams& p) {
  expert_tiles<T>(
      p, [&](const u8* data) { return LoadPacked<Block>{data, packed_layout<Block>(p.depth)}; });
}

#define RB_EXPERT_TILES(weight, Block)                                   \
  RB_KERNEL(expert_tiles_f32_##weight, kTileThreads, ExpertTilesParams,  \
            (packed_tiles<float, Block>(p)))                             \
  RB_KERNEL(expert_tiles_f16_##weight, kTileThreads, ExpertTilesParams,  \
            (packed_tiles<f16, Block>(p)))                               \
  RB_KERNEL(expert_tiles_bf16_##weight, kTileThreads, ExpertTilesParams, \
            (packed_tiles<bf16, Block>(p)))

}  // namespace gpu
}  // namespace rbee
