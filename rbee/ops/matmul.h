#pragma once

#include "rbee/tensor/tensor.h"

namespace rbee {

// y[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; an empty sum is 0
//   a: (..., m, k)   b: (..., k, n), one plain dtype, any strides: a transposed operand is a view
//   batch axes broadcast (NumPy's rule)   result: (..., m, n), a's dtype
// f16, bf16 and f8e4m3 are summed in float, integers in 64 bits. Throws invalid_argument naming
// both shapes if they do not fit.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace rbee
