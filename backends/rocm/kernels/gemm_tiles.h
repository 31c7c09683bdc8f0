#pragma once
// y = x * weight^T + bias on AMD's matrix instructions, or dot products if a target has none.
// gemm_steps.h and gemm_direct.h have the steps.

#include "backends/gpu/kernels/gemm_order.h"
#include "backends/rocm/kernels/gemm_direct.h"
#include "backends/rocm/kernels/gemm_steps.h"
#include "backends/shared/product_params.h"

namespace rbee {
namespace gpu {

template <class Tile, class T>
RB_DEVICE void gemm(const GemmParams& all) {
  const GemmParams p = matrix_of(all, block_y());
  const TilePlace place = tile_place<Tile::kLines, Tile::kLines>(block_x(), p.rows, p.outs);
  typename Tile::Sums sums = {};
#if defined(__gfx950__)
  const DirectOperand x(x_of(p), place.row);
  const DirectOperand weight(weight_of(p), place.out);
  copy_and_multiply<Tile, T>(sums, x, weight, p.depth);
#else
  OperandStage<T> x(x_of(p), place.row);
  OperandStage<T> weight(weight_of(p), place.out);
  multiply_steps<Tile, T>(sums, x, weight, p.depth);
#endif
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
