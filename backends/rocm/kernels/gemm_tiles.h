#pragma once
// y = x * weight^T + bias on AMD's matrix instructions, or dot products where a target has none: a
// step of both operands is read one step ahead into registers on its way into shared memory.

#include "backends/gpu/kernels/gemm_order.h"
#include "backends/rocm/kernels/gemm_dot.h"
#include "backends/rocm/kernels/gemm_matrix.h"
#include "backends/shared/product_params.h"

namespace rbee {
namespace gpu {

template <class Tile, class T>
RB_DEVICE void gemm(const GemmParams& p) {
  alignas(16) RB_SHARED u8 stages[2][2 * Tile::kOperandBytes];
  const TilePlace place = tile_place<Tile::kLines, Tile::kLines>(block_x(), p.rows, p.outs);
  OperandStage<T> x(p.x, place.row, p.rows, p.depth);
  OperandStage<T> weight(p.weight, place.out, p.outs, p.depth);
  const auto load = [&](int step) {
    x.load(step);
    weight.load(step);
  };
  const auto store = [&](u8* stage) {
    x.store(stage);
    weight.store(stage + Tile::kOperandBytes);
  };
  const int steps = (p.depth + kStepDepth - 1) / kStepDepth;
  typename Tile::Sums sums = {};
  load(0);
  store(stages[0]);
  for (int step = 0; step < steps; ++step) {
    barrier();  // this step is there, and nobody reads the other stage
    load(step + 1);
    const u8* stage = stages[step % 2];
    multiply_step<Tile, T>(sums, stage, stage + Tile::kOperandBytes);
    store(stages[(step + 1) % 2]);
  }
  if (p.y_type == 0) {
    store_tile<Tile, float>(p, place, sums);
  } else if (p.y_type == 1) {
    store_tile<Tile, f16>(p, place, sums);
  } else {
    store_tile<Tile, bf16>(p, place, sums);
  }
}

#define RB_GEMM(suffix, X)                                                                   \
  RB_KERNEL(gemm_##suffix##_large, LargeTile::kThreads, GemmParams, (gemm<LargeTile, X>(p))) \
  RB_KERNEL(gemm_##suffix##_small, SmallTile::kThreads, GemmParams, (gemm<SmallTile, X>(p)))

}  // namespace gpu
}  // namespace rbee
