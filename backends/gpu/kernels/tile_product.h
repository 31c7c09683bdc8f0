#pragma once
// One 64 x 64 tile of a product by plain multiply-adds, for any type and any way to read operands.

#include "backends/gpu/portable.h"

namespace rbee {
namespace gpu {

constexpr int kTile = 64;          // rows and columns of a tile
constexpr int kTileDepth = 16;     // of a step
constexpr int kTileThreads = 256;  // a thread owns 4 x 4 results, 16 apart
constexpr int kTilePitch = kTile + 1;

// Reads a (64, 16) part of an operand into shared memory as [depth][line]; 0 beyond its ends.
// `along_depth`: neighbouring threads read along the depth, else along the lines.
template <class C, class Load>
RB_DEVICE void stage_operand(C (*to)[kTilePitch], const Load& load, i64 line0, i64 lines,
                             i64 depth0, i64 depth, bool along_depth) {
  for (int i = static_cast<int>(thread_x()); i < kTile * kTileDepth; i += kTileThreads) {
    const int k = along_depth ? i % kTileDepth : i / kTile;
    const int line = along_depth ? i / kTileDepth : i % kTile;
    const bool inside = line0 + line < lines && depth0 + k < depth;
    to[k][line] = inside ? load(line0 + line, depth0 + k) : C(0);
  }
}

// The extents of a product, and how its operands lie.
struct ProductShape {
  i64 rows, columns, depth;
  bool a_along_depth, b_along_depth;  // unit stride of a and b
};

// store(row, column, sum over k of load_a(row, k) * load_b(column, k)) for the tile at (row0,
// column0). All threads of the block call it.
template <class C, class LoadA, class LoadB, class Store>
RB_DEVICE void tile_product(const ProductShape& shape, i64 row0, i64 column0, const LoadA& load_a,
                            const LoadB& load_b, const Store& store) {
  RB_SHARED C a[kTileDepth][kTilePitch];
  RB_SHARED C b[kTileDepth][kTilePitch];
  const int row = static_cast<int>(thread_x()) / 16;
  const int column = static_cast<int>(thread_x()) % 16;
  C sums[4][4] = {};
  // With integers compilers read a whole step ahead, for which registers do not suffice.
  constexpr bool kIntegers = C(1) / C(2) == C(0);
  constexpr int kTogether = kIntegers ? 4 : kTileDepth;
  for (i64 depth0 = 0; depth0 < shape.depth; depth0 += kTileDepth) {
    stage_operand<C>(a, load_a, row0, shape.rows, depth0, shape.depth, shape.a_along_depth);
    stage_operand<C>(b, load_b, column0, shape.columns, depth0, shape.depth, shape.b_along_depth);
    barrier();
#pragma unroll kTogether
    for (int k = 0; k < kTileDepth; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += a[k][row + 16 * i] * b[k][column + 16 * j];
      }
    }
    barrier();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const i64 r = row0 + row + 16 * i;
      const i64 c = column0 + column + 16 * j;
      if (r < shape.rows && c < shape.columns) store(r, c, sums[i][j]);
    }
  }
}

}  // namespace gpu
}  // namespace rbee
