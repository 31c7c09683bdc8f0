#pragma once
// y = x * weight^T + bias for many rows: see simdgroup_product.h. Block types are dequantised as
// they are staged.

#include "backends/metal/kernels/simdgroup_product.h"

namespace rbee {
namespace gpu {

// X: the type of x, bias and y.
template <class S, class X, int kRows, class Runs>
RB_DEVICE void simdgroup_linear(const LinearParams& p, const Runs& weight) {
  const int rows = static_cast<int>(p.rows), outs = static_cast<int>(p.outs);
  const TilePlace tile = tile_place<kRows, kProductOuts>(block_x(), rows, outs);
  const StoreWithBias<X> store{static_cast<X*>(p.y), static_cast<const X*>(p.bias), p.y_row};
  simdgroup_product<S, kRows>(
      ProductPlace{tile.row, tile.out, rows, outs, static_cast<int>(p.depth)},
      PlainRuns<X>{static_cast<const X*>(p.x), p.depth}, weight, store);
}

template <class S, class X, int kRows, class W>
RB_DEVICE void simdgroup_plain(const LinearParams& p) {
  simdgroup_linear<S, X, kRows>(p, PlainRuns<W>{static_cast<const W*>(p.weight), p.depth});
}
template <class S, class X, int kRows, class Block>
RB_DEVICE void simdgroup_packed(const LinearParams& p) {
  simdgroup_linear<S, X, kRows>(
      p, PackedRuns<Block>{static_cast<const u8*>(p.weight), packed_layout<Block>(p.depth)});
}

// Tiles of 64 rows and of 32.
#define RB_SIMDGROUP(body, S, x, X, weight, W)                                      \
  RB_KERNEL(linear_simdgroup_##x##_##weight##_large, kProductThreads, LinearParams, \
            (body<S, X, 64, W>(p)))                                                 \
  RB_KERNEL(linear_simdgroup_##x##_##weight##_small, kProductThreads, LinearParams, \
            (body<S, X, 32, W>(p)))
#define RB_SIMDGROUP_PACKED(weight, Block)                         \
  RB_SIMDGROUP(simdgroup_packed, float, f32, float, weight, Block) \
  RB_SIMDGROUP(simdgroup_packed, f16, f16, f16, weight, Block)     \
  RB_SIMDGROUP(simdgroup_packed, float, bf16, bf16, weight, Block)

}  // namespace gpu
}  // namespace rbee
