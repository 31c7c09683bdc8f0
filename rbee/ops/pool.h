#pragma once

#include "backends/api/args_conv.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

struct Pool2dOptions {
  int64_t kernel_h = 1, kernel_w = 1;  // elements
  int64_t stride_h = 1, stride_w = 1;
};

// The mean or the maximum of each window; no padding, windows that fit whole. A NaN in a window
// makes its result NaN. Means of integers are truncated.
//   x: (batch, channels, height, width) of any plain dtype
//   result: (batch, channels, (height - kernel_h) / stride_h + 1, (width - kernel_w) / stride_w +
//   1)
// Throws invalid_argument if a size is out of range or a window does not fit.
Tensor pool2d(PoolOp op, const Tensor& x, const Pool2dOptions& options);

}  // namespace rbee
