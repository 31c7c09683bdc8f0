// y = a * b for f32, f16 and bf16, any strides and batches: see simdgroup_product.h.
#include "backends/gpu/kernels/product_batch.h"
#include "backends/metal/kernels/simdgroup_product.h"

namespace rbee {
namespace gpu {

constexpr int kMatmulRows = 64;

// Lines of an operand with strides. `whole`: the depth is whole runs, on multiples of 16 bytes.
template <class T>
struct StridedRuns {
  const T* data;
  i64 line_stride, step;
  i64 depth;
  bool whole;
  RB_DEVICE bool across() const { return step != 1; }
  template <class S>
  RB_DEVICE void read(i64 line, i64 k, RunWords<S>& to) const {
    const T* const from = data + line * line_stride + k * step;
    if (whole) return read_plain(from, to);
    float values[kStagedRun];
#pragma unroll
    for (int i = 0; i < kStagedRun; ++i) {
      values[i] = 0;
      if (k + i < depth) values[i] = load_value(from[i * step]);
    }
    set_run(to, values);
  }
};

// Of an operand whose first matrix begins on a multiple of 16 bytes.
template <class T>
RB_DEVICE StridedRuns<T> strided_runs(const MatmulParams& p, const void* data, i64 line_stride,
                                      i64 step, const i64* batch, i64 matrix) {
  bool whole = step == 1 && p.depth % kStagedRun == 0 && line_stride % kStagedRun == 0;
#pragma unroll
  for (int axis = 0; axis < kProductBatchAxes; ++axis) {
    whole = whole && batch[axis] % kStagedRun == 0;
  }
  const T* const first = static_cast<const T*>(data);
  return {first + batch_offset(p.batch_sizes, batch, matrix), line_stride, step, p.depth, whole};
}

// Blocks take tiles in turn: along a row of tiles first.
template <class S, class T>
RB_DEVICE void matmul_simdgroup(const MatmulParams& p) {
  const i64 across = (p.columns + kProductOuts - 1) / kProductOuts;
  const i64 per_matrix = (p.rows + kMatmulRows - 1) / kMatmulRows * across;
  const i64 tiles = per_matrix * p.batch_sizes[0] * p.batch_sizes[1] * p.batch_sizes[2];
  for (i64 tile = block_x(); tile < tiles; tile += blocks_x()) {
    const i64 matrix = tile / per_matrix, inside = tile % per_matrix;
    T* const y = static_cast<T*>(p.y) + batch_offset(p.batch_sizes, p.y_batch, matrix);
    const ProductPlace place{static_cast<int>(inside / across) * kMatmulRows,
                             static_cast<int>(inside % across) * kProductOuts,
                             static_cast<int>(p.rows), static_cast<int>(p.columns),
                             static_cast<int>(p.depth)};
    simdgroup_product<S, kMatmulRows>(
        place, strided_runs<T>(p, p.a, p.a_row, p.a_step, p.a_batch, matrix),
        strided_runs<T>(p, p.b, p.b_column, p.b_step, p.b_batch, matrix),
        [&](i64 row, i64 column, float sum) {
          y[row * p.y_row + column * p.y_column] = store_value<T>(sum);
        });
    barrier();
  }
}

#define RB_MATMUL(dtype, S, T) \
  RB_KERNEL(matmul_simdgroup_##dtype, kProductThreads, MatmulParams, (matmul_simdgroup<S, T>(p)))
RB_MATMUL(f32, float, float)
RB_MATMUL(f16, f16, f16)
RB_MATMUL(bf16, float, bf16)

}  // namespace gpu
}  // namespace rbee
