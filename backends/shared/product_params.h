#pragma once
// Matrix products: see backends/api/args_matmul.h.

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

enum { kProductBatchAxes = 3 };

// y(batch, rows, columns) = a(batch, rows, depth) * b(batch, depth, columns); strides in elements.
struct MatmulParams {
  const void* a;
  const void* b;
  void* y;
  i64 rows, columns, depth;
  i64 a_row, a_step;
  i64 b_step, b_column;
  i64 y_row, y_column;
  i64 batch_sizes[kProductBatchAxes];  // padded in front with 1
  i64 a_batch[kProductBatchAxes];
  i64 b_batch[kProductBatchAxes];
  i64 y_batch[kProductBatchAxes];
};

// y(rows, outs) = x(rows, depth) * weight(outs, depth)^T + bias(outs). Everything but y's rows is
// contiguous; x, bias and y have one type.
struct LinearParams {
  const void* x;
  const void* weight;
  const void* bias;  // null: none
  void* y;
  i64 rows, outs, depth;
  i64 y_row;  // elements between rows of y
};

// The same for tensor cores: x has the weight's type, bias and y have y_type's. Rows of x and of
// the weight begin on multiples of 16 bytes and may have gaps. A launch may multiply several
// matrices, one for each block along y of the grid.
struct GemmParams {
  const void* x;
  const void* weight;
  const void* bias;  // null: none
  void* y;
  i32 rows, outs, depth;
  i32 y_type;                             // 0: f32, 1: f16, 2: bf16
  i64 y_row;                              // elements between rows of y
  i32 x_row, weight_row;                  // and of the others
  i64 x_matrix, weight_matrix, y_matrix;  // bytes between matrices
};

// x in f32 as terms of 16 bits, (terms, rows, depth), for products on tensor cores:
//   x[row] = scales[row] * sum over t of terms[t][row] * step^t
// Three terms of bf16, with step 1 and scales of 1, are exactly x. Two of f16, with step 2^-11,
// keep 24 bits of each element, and more than f32 has beside the row's largest.
enum { kSplitThreads = 256, kF16Terms = 2, kBf16Terms = 3 };
struct SplitXParams {
  const float* x;  // (rows, depth), rows begin on multiples of 16 bytes
  void* terms;
  float* scales;
  i64 rows, depth;
};

// y[row] = scales[row / each] * sum over t of products[t][row] * step^t + bias of the row's expert.
enum { kJoinThreads = 256, kJoinEach = 4 };  // a block's threads, and outs of a thread
struct JoinTermsParams {
  const float* products;  // (terms, rows, outs)
  const float* scales;
  const float* bias;   // (experts, outs); null: none
  const i32* experts;  // (rows); null: the first's
  float* y;
  i64 rows;
  i64 y_row;  // elements between rows of y
  i32 outs, terms;
  i32 each;  // rows of a row of x
  float step;
};

}  // namespace shared
}  // namespace rbee
