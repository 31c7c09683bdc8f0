#pragma once

#include "backends/api/args_reduce.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

struct TopK {
  Tensor values;  // (rows, k) f32, largest first
  Tensor ids;     // (rows, k) i32, places in the row; of equal values the lower comes first
  Tensor sum;     // (rows) f32 or undefined
};

enum class RowSum : uint8_t { none, wanted };

// The k largest of each row. x: (rows, n) f32, f16 or bf16, any strides; 1 <= k <= n and k <= 1024.
// NaN counts as -infinity. With RowSum::wanted, `sum` is the sum over the row of
// exp(scale * (x - largest)): the softmax of scale * x is exp(scale * (value - largest)) / sum.
// scale: (rows) f32, undefined = 1. Throws invalid_argument, and unsupported for other types.
TopK top_k(const Tensor& x, int64_t k, RowSum row_sum = RowSum::none, const Tensor& scale = {});

// The same into tensors that exist; their first axis may have any stride.
void top_k_(const TopK& out, const Tensor& x, const Tensor& scale = {});

}  // namespace rbee
