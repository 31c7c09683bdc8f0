#pragma once
// matmul of f32, any strides. Include after a vec header.

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"
#include "backends/cpu/simd/gemm_loops.h"

namespace rbee::cpu {
namespace {

// The first element of matrix `item` of a batch, row-major over the batch axes of `sizes`.
RB_INLINE float* matrix_of(const View& view, const View& sizes, int64_t item) {
  int64_t offset = 0;
  for (int axis = sizes.rank - 3; axis >= 0; --axis) {
    offset += item % sizes.sizes[axis] * view.strides[axis];
    item /= sizes.sizes[axis];
  }
  return static_cast<float*>(view.data) + offset;
}

struct MatmulItems {
  const MatmulArgs& args;

  const float* a(int64_t item) const { return matrix_of(args.a, args.y, item); }
  float* y(int64_t item) const { return matrix_of(args.y, args.y, item); }
  const float* bias(int64_t) const { return nullptr; }
  void pack(int64_t item, int64_t column, int64_t width, int64_t first, int64_t depth,
            float* to) const {
    const int rows = args.b.rank - 2;
    const int columns = args.b.rank - 1;
    const float* b = matrix_of(args.b, args.y, item) + first * args.b.strides[rows] +
                     column * args.b.strides[columns];
    pack_strip<kTileColumns>(b, args.b.strides[columns], args.b.strides[rows], width, depth, to);
  }
};

const char* refuse_matmul(const MatmulArgs& args) {
  if (args.y.dtype != DType::f32) return "takes f32";
  return nullptr;
}

void run_matmul(const MatmulArgs& args, Stream&) {
  const int rows = args.y.rank - 2;
  const int columns = args.y.rank - 1;
  Gemm g;
  for (int axis = 0; axis < rows; ++axis) g.items *= args.y.sizes[axis];
  g.rows = args.y.sizes[rows];
  g.columns = args.y.sizes[columns];
  g.depth = args.a.sizes[columns];
  g.a_row = args.a.strides[rows];
  g.a_depth = args.a.strides[columns];
  g.y_row = args.y.strides[rows];
  g.y_column = args.y.strides[columns];
  run_gemm(g, MatmulItems{args});
}

}  // namespace
}  // namespace rbee::cpu
