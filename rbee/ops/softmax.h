#pragma once

#include "rbee/tensor/tensor.h"

namespace rbee {

// exp(x) / sum(exp(x)) over the last axis; x: (..., dim) any float type, any strides. The result
// has x's shape and dtype. A row whose largest element is an infinity or NaN gives NaN.
Tensor softmax(const Tensor& x);

}  // namespace rbee
