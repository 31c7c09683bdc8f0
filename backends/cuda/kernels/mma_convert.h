#pragma once
// y = x * weight^T + bias for weights that are not in x's type: packed block types, f8, and f16 or
// bf16 under the other. A step of the weight is read as it lies, one step ahead, and converted into
// shared memory; no converted copy exists. Conversion costs about as much issue time as a third of
// the products.

#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/gpu/kernels/gemm_order.h"

namespace rbee {
namespace gpu {

using LargeTile = MmaTile<128, 128, 2, 4, 4>;
using SmallTile = MmaTile<64, 64, 2, 2, 4>;

template <class Tile, class T, class Run>
RB_DEVICE void gemm_convert(const GemmParams& p) {
  extern __shared__ __align__(128) u8 stages[];
  const TilePlace place = tile_place<Tile::kRows, Tile::kOuts>(block_x(), p.rows, p.outs);
  const T* x = static_cast<const T*>(p.x);
  const u32 base = shared_address(stages);
  const int steps = (p.depth + kStepDepth - 1) / kStepDepth;
  const auto stage_of = [](int step) { return step % Tile::kStages * Tile::kStageBytes; };
  const auto stage_x = [&](int step) {
    if (step < steps) {
      stage_rows<Tile::kRows, Tile::kThreads>(base + static_cast<u32>(stage_of(step)), x, place.row,
                                              p.rows, step * kStepDepth, p.depth);
    }
    commit_copies();
  };
  static_assert(Tile::kOuts * kStepDepth == Tile::kThreads * kRun, "one run a thread and step");
  OperandStage<Run> weight(p.weight, place.out, p.outs, p.depth);
  weight.load(0);
#pragma unroll
  for (int step = 0; step < Tile::kStages - 1; ++step) stage_x(step);
  weight.template store<T>(stages + Tile::kRows * kStepBytes);
  float sums[Tile::kM][Tile::kN][4] = {};
  for (int step = 0; step < steps; ++step) {
    wait_copies<Tile::kStages - 2>();
    barrier();
    stage_x(step + Tile::kStages - 1);
    weight.load(step + 1);
    const u32 from = base + static_cast<u32>(stage_of(step));
    multiply_step<Tile, T>(sums, from, from + Tile::kRows * kStepBytes);
    // Last read kStages - 1 steps ago, before the barrier above.
    weight.template store<T>(stages + stage_of(step + 1) + Tile::kRows * kStepBytes);
  }
  store_results<Tile>(p, place.row, place.out, sums);
}

#define RB_CONVERT(x, X, weight, Run)                                     \
  RB_KERNEL(gemm_##x##_##weight##_large, LargeTile::kThreads, GemmParams, \
            (gemm_convert<LargeTile, X, Run>(p)))                         \
  RB_KERNEL(gemm_##x##_##weight##_small, SmallTile::kThreads, GemmParams, \
            (gemm_convert<SmallTile, X, Run>(p)))

}  // namespace gpu
}  // namespace rbee
