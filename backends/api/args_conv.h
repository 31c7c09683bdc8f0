#pragma once
// Convolutions, pooling and upsampling. Sizes are in elements; cross-correlation as in PyTorch.

#include "backends/api/view.h"

namespace rbee {

// x: (batch, in_channels, length)   weight: (out_channels, in_channels / groups, kernel)
// bias: (out_channels), optional    y: (batch, out_channels, out_length)
struct Conv1dArgs {
  View x, weight, bias, y;
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};

// x: (batch, in_channels, height, width)
// weight: (out_channels, in_channels / groups, kernel_height, kernel_width)
struct Conv2dArgs {
  View x, weight, bias, y;
  int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0;
  int64_t dilation_h = 1, dilation_w = 1, groups = 1;
};

// weight: (in_channels, out_channels / groups, kernel)
struct ConvTranspose1dArgs {
  View x, weight, bias, y;
  int64_t stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
};

// weight: (in_channels, out_channels / groups, kernel_height, kernel_width)
struct ConvTranspose2dArgs {
  View x, weight, bias, y;
  int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0;
  int64_t output_padding_h = 0, output_padding_w = 0;
  int64_t dilation_h = 1, dilation_w = 1, groups = 1;
};

// The windows of a convolution as rows, with zeros for the padding; y has x's type. An element of a
// row is (channel, kernel row, kernel column).
//   x: (batch, channels, height, width)   y: (batch, out_height * out_width, elements of a window)
//   x: (batch, channels, length)          y: (batch, out_length, elements of a window); sizes ..._w
struct Im2colArgs {
  View x, y;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  int64_t padding_h = 0, padding_w = 0, dilation_h = 1, dilation_w = 1;
  int64_t out_w = 1;  // windows side by side
};

// Adds up overlapping windows that are `stride` apart.
//   x: (batch, length, channels, kernel)
//   y: (batch, channels, (length - 1) * stride + kernel)
struct Col2im1dArgs {
  View x, y;
  int64_t stride = 1;
};

enum class PoolOp : uint8_t { avg, max };

// x: (batch, channels, height, width); no padding, windows that fit whole
struct Pool2dArgs {
  PoolOp op;
  View x, y;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
};

enum class UpsampleMode : uint8_t { nearest, bilinear };

// x: (batch, channels, length) or (batch, channels, height, width); y: the same with other spatial
// sizes. nearest: source index floor(i * in / out). bilinear: PyTorch's, align_corners as given.
struct UpsampleArgs {
  UpsampleMode mode;
  View x, y;
  bool align_corners = false;
};

}  // namespace rbee
