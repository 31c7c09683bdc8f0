#pragma once
// Adds up the partial sums of a linear layer for few rows (FewRowsParams) and does what follows the
// layer in a transformer: see LinearNormArgs in backends/api/args_matmul.h.

#include "backends/shared/scalar.h"

namespace rbee {
namespace shared {

// Threads of a block. Each block has one row.
enum { kFewNormThreads = 512 };

struct FewNormParams {
  const float* partials;    // as in FewRowsParams
  const void* bias;         // (dim); null: none
  const void* residual;     // (rows, dim)
  const void* norm_weight;  // (dim)
  void* sum;                // (rows, dim)
  void* y;                  // (rows, dim)
  i32 rows;
  i32 dim;
  i32 outs;  // of a tile
  i32 splits;
  float eps;
};

}  // namespace shared
}  // namespace rbee
