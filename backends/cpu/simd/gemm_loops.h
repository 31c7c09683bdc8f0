#pragma once
// Products of f32 matrices, y = a * b (+ bias), in blocks that fit the caches (Goto and van de
// Geijn 2008, "Anatomy of high-performance matrix multiplication"). Operands are packed into
// strips, so all strides are equally fast, and b may be anything that can fill a strip, e.g. the
// patches of an image. Include after a vec header.
//
// `Items` describes many products of one size, e.g. a batch or the groups of a convolution:
//   const float* a(int64_t item)       (rows, depth) with the steps of Gemm
//   float* y(int64_t item)             (rows, columns) with the steps of Gemm
//   const float* bias(int64_t item)    one value a row, bias_step apart; null: 0
//   void pack(item, column, width, first, depth, float* to)
//     to[k * kTileColumns + j] = b[first + k, column + j] for k < depth, j < width; 0 for other j

#include "backends/cpu/thread_pool.h"
#include "backends/cpu/workspace.h"

namespace rbee::cpu {
namespace {

// A tile of y lives in registers: two vectors for each of its rows.
constexpr int kGemmRows = kLanes == 16 ? 12 : 6;
constexpr int kTileColumns = 2 * kLanes;
// A strip of b (kBlockDepth x kTileColumns) stays in the first cache, a block of a (kBlockRows x
// kBlockDepth) in the second and a block of b (kBlockDepth x kBlockColumns) in the third.
constexpr int64_t kBlockDepth = 256;
constexpr int64_t kBlockRows = 16 * kGemmRows;
constexpr int64_t kBlockColumns = 1024;
// Products below this many multiplications run on the calling thread: waking the pool costs more.
constexpr int64_t kGemmGrain = 1 << 16;

// Sizes and steps, in elements, of all products of one operation.
struct Gemm {
  int64_t items = 1, rows = 0, columns = 0, depth = 0;
  int64_t a_row = 0, a_depth = 0, y_row = 0, y_column = 0, bias_step = 0;
};

// The part of b that is packed at a time: some columns and some depth of one item.
struct GemmBlock {
  int64_t item, column, columns, first, depth;
};

// Where packed blocks go.
struct GemmScratch {
  float *a, *b;
};

RB_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
RB_INLINE int64_t blocks_of(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}
RB_INLINE int64_t rounded_up(int64_t n, int64_t multiple) {
  return blocks_of(n, multiple) * multiple;
}

// to[k * kWidth + i] = from[i * across + k * along]; lines from `width` on are 0.
template <int kWidth>
RB_INLINE void pack_strip(const float* from, int64_t across, int64_t along, int64_t width,
                          int64_t depth, float* to) {
  if (across == 1 && width == kWidth) {
    for (int64_t k = 0; k < depth; ++k) {
      for (int i = 0; i < kWidth; ++i) to[k * kWidth + i] = from[k * along + i];
    }
    return;
  }
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t k = 0; k < depth; ++k) to[k * kWidth + i] = from[i * across + k * along];
  }
  for (int64_t i = width; i < kWidth; ++i) {
    for (int64_t k = 0; k < depth; ++k) to[k * kWidth + i] = 0;
  }
}

struct Tile {
  Vec sums[kGemmRows][2];
};

// start[r] + the product of a strip of a and a strip of b.
RB_INLINE Tile multiply_strips(const float* a, const float* b, int64_t depth, const float* start) {
  Tile tile;
#pragma GCC unroll 12
  for (int r = 0; r < kGemmRows; ++r) tile.sums[r][0] = tile.sums[r][1] = splat(start[r]);
  for (int64_t k = 0; k < depth; ++k) {
    const Vec b0 = load(b);
    const Vec b1 = load(b + kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < kGemmRows; ++r) {
      const Vec x = splat(a[r]);
      tile.sums[r][0] = fma(x, b0, tile.sums[r][0]);
      tile.sums[r][1] = fma(x, b1, tile.sums[r][1]);
    }
    a += kGemmRows;
    b += kTileColumns;
  }
  return tile;
}

// A whole tile into contiguous rows.
RB_INLINE void store_tile(const Tile& tile, float* y, int64_t row_step, bool add) {
#pragma GCC unroll 12
  for (int r = 0; r < kGemmRows; ++r) {
    float* row = y + r * row_step;
    store(row, add ? load(row) + tile.sums[r][0] : tile.sums[r][0]);
    store(row + kLanes, add ? load(row + kLanes) + tile.sums[r][1] : tile.sums[r][1]);
  }
}

// The first rows and columns of a tile, wherever y's elements lie.
RB_INLINE void store_part(const Tile& tile, float* y, const Gemm& g, int64_t rows, int64_t columns,
                          bool add) {
  float values[kGemmRows * kTileColumns];
  for (int r = 0; r < kGemmRows; ++r) {
    store(values + r * kTileColumns, tile.sums[r][0]);
    store(values + r * kTileColumns + kLanes, tile.sums[r][1]);
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float& element = y[r * g.y_row + c * g.y_column];
      element = values[r * kTileColumns + c] + (add ? element : 0.0f);
    }
  }
}

// Packs strips [begin, end) of a block of b.
template <typename Items>
void pack_block(const Items& items, const GemmBlock& block, int64_t begin, int64_t end, float* to) {
  for (int64_t strip = begin; strip < end; ++strip) {
    const int64_t column = strip * kTileColumns;
    items.pack(block.item, block.column + column, smaller(block.columns - column, kTileColumns),
               block.first, block.depth, to + column * block.depth);
  }
}

// Rows [row, row + rows) of y, strips [begin, end) of the packed block: packs a, then multiplies.
template <typename Items>
void multiply_block(const Gemm& g, const Items& items, const GemmBlock& block, int64_t row,
                    int64_t rows, int64_t begin, int64_t end, const GemmScratch& scratch) {
  const float* a = items.a(block.item) + row * g.a_row + block.first * g.a_depth;
  const float* bias = block.first == 0 ? items.bias(block.item) : nullptr;
  float start[kBlockRows];
  for (int64_t r = 0; r < kBlockRows; ++r) {
    start[r] = bias != nullptr && r < rows ? bias[(row + r) * g.bias_step] : 0.0f;
  }
  for (int64_t r = 0; r < rows; r += kGemmRows) {
    pack_strip<kGemmRows>(a + r * g.a_row, g.a_row, g.a_depth, smaller(rows - r, kGemmRows),
                          block.depth, scratch.a + r * block.depth);
  }
  for (int64_t strip = begin; strip < end; ++strip) {
    const int64_t column = strip * kTileColumns;
    const int64_t columns = smaller(block.columns - column, kTileColumns);
    float* y = items.y(block.item) + row * g.y_row + (block.column + column) * g.y_column;
    for (int64_t r = 0; r < rows; r += kGemmRows) {
      const Tile tile = multiply_strips(scratch.a + r * block.depth,
                                        scratch.b + column * block.depth, block.depth, start + r);
      const int64_t tile_rows = smaller(rows - r, kGemmRows);
      const bool whole = tile_rows == kGemmRows && columns == kTileColumns && g.y_column == 1;
      if (whole) {
        store_tile(tile, y + r * g.y_row, g.y_row, block.first > 0);
      } else {
        store_part(tile, y + r * g.y_row, g, tile_rows, columns, block.first > 0);
      }
    }
  }
}

// Calls body(block) for each step along the depth of slab `slab`: an item and some of its columns.
// An empty sum still has one step, which writes the bias or zeros.
template <typename Body>
RB_INLINE void for_each_block(const Gemm& g, int64_t slab, Body&& body) {
  const int64_t slabs = blocks_of(g.columns, kBlockColumns);
  const int64_t column = slab % slabs * kBlockColumns;
  const int64_t columns = smaller(g.columns - column, kBlockColumns);
  for (int64_t first = 0; first == 0 || first < g.depth; first += kBlockDepth) {
    body(GemmBlock{slab / slabs, column, columns, first, smaller(g.depth - first, kBlockDepth)});
  }
}

// A slab on the calling thread.
template <typename Items>
void run_slab(const Gemm& g, const Items& items, int64_t slab, const GemmScratch& scratch) {
  for_each_block(g, slab, [&](const GemmBlock& block) {
    const int64_t strips = blocks_of(block.columns, kTileColumns);
    pack_block(items, block, 0, strips, scratch.b);
    for (int64_t row = 0; row < g.rows; row += kBlockRows) {
      multiply_block(g, items, block, row, smaller(g.rows - row, kBlockRows), 0, strips, scratch);
    }
  });
}

// A slab on all threads: they pack b together, then share out parts of y.
template <typename Items>
void share_slab(const Gemm& g, const Items& items, int64_t slab, float* scratch_a, float* scratch_b,
                int64_t a_size) {
  ThreadPool& pool = ThreadPool::shared();
  const int64_t wanted = 4 * pool.threads();  // parts, so that slow threads take fewer
  const int64_t row_blocks = blocks_of(g.rows, kBlockRows);
  for_each_block(g, slab, [&](const GemmBlock& block) {
    const int64_t strips = blocks_of(block.columns, kTileColumns);
    pool.parallel_for(strips, 4, [&](int64_t begin, int64_t end, int) {
      pack_block(items, block, begin, end, scratch_b);
    });
    // Each part packs its rows of a again: at least eight strips pay for that.
    const int64_t width = rounded_up(blocks_of(strips * row_blocks, wanted), 8);
    const int64_t parts = blocks_of(strips, width);
    pool.parallel_for(row_blocks * parts, 1, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / parts * kBlockRows;
        const int64_t strip = i % parts * width;
        multiply_block(g, items, block, row, smaller(g.rows - row, kBlockRows), strip,
                       smaller(strip + width, strips), {scratch_a + thread * a_size, scratch_b});
      }
    });
  });
}

template <typename Items>
void run_gemm(const Gemm& g, const Items& items) {
  if (g.items == 0 || g.rows == 0 || g.columns == 0) return;
  ThreadPool& pool = ThreadPool::shared();
  const int64_t slabs = g.items * blocks_of(g.columns, kBlockColumns);
  const int64_t depth = smaller(g.depth, kBlockDepth);
  const int64_t a_size = rounded_up(smaller(g.rows, kBlockRows), kGemmRows) * depth + kLanes;
  const int64_t b_size =
      rounded_up(smaller(g.columns, kBlockColumns), kTileColumns) * depth + kLanes;
  const bool small = g.items * g.rows * g.columns * g.depth <= kGemmGrain;
  const bool alone = small || slabs >= 2 * pool.threads();
  const int64_t packed_b = alone ? pool.threads() * b_size : b_size;
  auto* scratch_a = reinterpret_cast<float*>(
      thread_workspace((pool.threads() * a_size + packed_b) * static_cast<int64_t>(sizeof(float))));
  float* scratch_b = scratch_a + pool.threads() * a_size;
  if (!alone) {
    for (int64_t slab = 0; slab < slabs; ++slab) {
      share_slab(g, items, slab, scratch_a, scratch_b, a_size);
    }
    return;
  }
  pool.parallel_for(slabs, small ? slabs : 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t slab = begin; slab < end; ++slab) {
      run_slab(g, items, slab, {scratch_a + thread * a_size, scratch_b + thread * b_size});
    }
  });
}

}  // namespace
}  // namespace rbee::cpu
