// y = x * weight^T + bias in f16 and bf16 on tensor cores: steps of both operands are copied to
// shared memory several steps ahead. Large products are limited by mma.sync, which gives about
// two thirds of what sm_90's wgmma gives; small ones by the latency of their few steps.
#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/gpu/kernels/gemm_order.h"

namespace rbee {
namespace gpu {

using LargeTile = MmaTile<128, 128, 2, 4, 4>;
using SmallTile = MmaTile<64, 64, 2, 2, 4>;

template <class Tile, class T>
RB_DEVICE void gemm(const GemmParams& p) {
  extern __shared__ __align__(128) u8 stages[];
  const TilePlace place = tile_place<Tile::kRows, Tile::kOuts>(block_x(), p.rows, p.outs);
  const T* x = static_cast<const T*>(p.x);
  const T* weight = static_cast<const T*>(p.weight);
  const u32 base = shared_address(stages);
  const int steps = (p.depth + kStepDepth - 1) / kStepDepth;
  const auto stage = [&](int step) {
    if (step < steps) {
      const u32 to = base + static_cast<u32>(step % Tile::kStages * Tile::kStageBytes);
      stage_rows<Tile::kRows, Tile::kThreads>(to, x, place.row, p.rows, step * kStepDepth, p.depth);
      stage_rows<Tile::kOuts, Tile::kThreads>(to + Tile::kRows * kStepBytes, weight, place.out,
                                              p.outs, step * kStepDepth, p.depth);
    }
    commit_copies();  // empty groups too, so that counting them counts steps
  };
  float sums[Tile::kM][Tile::kN][4] = {};
#pragma unroll
  for (int step = 0; step < Tile::kStages - 1; ++step) stage(step);
  for (int step = 0; step < steps; ++step) {
    wait_copies<Tile::kStages - 2>();
    barrier();  // this step is there for all, and nobody reads the stage that is filled next
    stage(step + Tile::kStages - 1);
    const u32 from = base + static_cast<u32>(step % Tile::kStages * Tile::kStageBytes);
    multiply_step<Tile, T>(sums, from, from + Tile::kRows * kStepBytes);
  }
  store_results<Tile>(p, place.row, place.out, sums);
}

#define RB_GEMM(dtype, T)                                                                   \
  RB_KERNEL(gemm_##dtype##_large, LargeTile::kThreads, GemmParams, (gemm<LargeTile, T>(p))) \
  RB_KERNEL(gemm_##dtype##_small, SmallTile::kThreads, GemmParams, (gemm<SmallTile, T>(p)))
RB_GEMM(f16, f16)
RB_GEMM(bf16, bf16)

}  // namespace gpu
}  // namespace rbee
