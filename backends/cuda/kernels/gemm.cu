// y = x * weight^T + bias in f16 and bf16 on tensor cores: threads copy steps of both operands to
// shared memory several steps ahead. mma.sync limits large products: it gives about two thirds
// of what sm_90's wgmma gives. The latency of their few steps limits small ones.
#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/gpu/kernels/gemm_order.h"

namespace rbee {
namespace gpu {

using LargeTile = MmaTile<128, 128, 2, 4, 4>;
using SmallTile = MmaTile<64, 64, 2, 2, 4>;

template <class Tile, class T>
RB_DEVICE void gemm(const GemmParams& all) {
  extern __shared__ __align__(128) u8 stages[];
  const GemmParams p = matrix_of(all, block_y());
  const TilePlace place = tile_place<Tile::kRows, Tile::kOuts>(block_x(), p.rows, p.outs);
  const Operand x = x_of(p), weight = weight_of(p);
  const auto copy = [&](int step, u32 to) {
    stage_rows<Tile::kRows, Tile::kThreads>(to, x, place.row, step * kStepDepth);
    stage_rows<Tile::kOuts, Tile::kThreads>(to + Tile::kRows * kStepBytes, weight, place.out,
                                            step * kStepDepth);
  };
  float sums[Tile::kM][Tile::kN][4] = {};
  multiply_steps<Tile, T>(sums, shared_address(stages), p.depth, copy);
  store_results<Tile>(p, place.row, place.out, sums);
}

#define RB_GEMM(dtype, T)                                                                   \
  RB_KERNEL(gemm_##dtype##_large, LargeTile::kThreads, GemmParams, (gemm<LargeTile, T>(p))) \
  RB_KERNEL(gemm_##dtype##_small, SmallTile::kThreads, GemmParams, (gemm<SmallTile, T>(p)))
RB_GEMM(f16, f16)
RB_GEMM(bf16, bf16)

}  // namespace gpu
}  // namespace rbee
