// y = a * b for every dtype and any strides: 64 x 64 tiles in shared memory, multiply-adds on
// registers. Limited by shared memory's bandwidth; tensor cores are in the vendors' kernels.
#include "backends/gpu/kernels/product_batch.h"
#include "backends/gpu/kernels/tile_product.h"

namespace rbee {
namespace gpu {

// The type of sums of products of T. Integers keep the low bits, so unsigned sums as wide as
// the result give the same as 64-bit ones.
template <class T>
struct SumOf {
  using type = Compute<T>;
};
template <>
struct SumOf<u8> {
  using type = u32;
};
template <>
struct SumOf<i16> {
  using type = u32;
};
template <>
struct SumOf<i32> {
  using type = u32;
};
template <>
struct SumOf<i64> {
  using type = u64;
};

template <class T, class C>
struct LoadStrided {
  const T* data;
  i64 line_stride, step;
  RB_DEVICE C operator()(i64 line, i64 k) const {
    return static_cast<C>(load_value(data[line * line_stride + k * step]));
  }
};

template <class T, class C>
struct StoreStrided {
  T* data;
  i64 row_stride, column_stride;
  RB_DEVICE void operator()(i64 row, i64 column, C sum) const {
    data[row * row_stride + column * column_stride] = store_value<T>(static_cast<Compute<T>>(sum));
  }
};

// Blocks take tiles in turn: along a row of tiles first.
template <class T>
RB_DEVICE void matmul(const MatmulParams& p) {
  using C = typename SumOf<T>::type;
  const i64 across = (p.columns + kTile - 1) / kTile;
  const i64 per_matrix = (p.rows + kTile - 1) / kTile * across;
  const i64 tiles = per_matrix * p.batch_sizes[0] * p.batch_sizes[1] * p.batch_sizes[2];
  const ProductShape shape{p.rows, p.columns, p.depth, p.a_step == 1, p.b_step == 1};
  for (i64 tile = block_x(); tile < tiles; tile += blocks_x()) {
    const i64 matrix = tile / per_matrix;
    const i64 inside = tile % per_matrix;
    const T* a = static_cast<const T*>(p.a) + batch_offset(p.batch_sizes, p.a_batch, matrix);
    const T* b = static_cast<const T*>(p.b) + batch_offset(p.batch_sizes, p.b_batch, matrix);
    T* y = static_cast<T*>(p.y) + batch_offset(p.batch_sizes, p.y_batch, matrix);
    tile_product<C>(shape, inside / across * kTile, inside % across * kTile,
                    LoadStrided<T, C>{a, p.a_row, p.a_step},
                    LoadStrided<T, C>{b, p.b_column, p.b_step},
                    StoreStrided<T, C>{y, p.y_row, p.y_column});
  }
}

#define RB_MATMUL(dtype, T) RB_KERNEL(matmul_##dtype, kTileThreads, MatmulParams, (matmul<T>(p)))
RB_EACH_PLAIN(RB_MATMUL)

}  // namespace gpu
}  // namespace rbee
