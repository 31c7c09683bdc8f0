#pragma once

#include "rbee/tensor/tensor.h"

namespace rbee {

// The indices (u32) that sort each last-axis row of x; stable. NaN is last in ascending order and
// first in descending order. x: (..., dim) any plain type, any strides, at least one axis.
Tensor argsort(const Tensor& x, bool descending = false);

}  // namespace rbee
