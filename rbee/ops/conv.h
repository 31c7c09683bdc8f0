#pragma once
// Convolutions (cross-correlations, as in PyTorch) with zero padding. All operands have one plain
// dtype and may be strided; sums are taken in float (f64: double, integers: 64 bits). Throws
// invalid_argument if an option is out of range, a shape does not fit, or the result has no
// elements along a spatial axis.

#include "rbee/tensor/tensor.h"

namespace rbee {

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1;  // elements along length
  int64_t groups = 1;                             // channel groups that do not mix
};

// x: (batch, in_channels, length)   weight: (out_channels, in_channels / groups, kernel)
// bias: (out_channels) or undefined
// result: (batch, out_channels, (length + 2 padding - dilation (kernel - 1) - 1) / stride + 1)
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv1dOptions& options = {});

struct Conv2dOptions {
  int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0;
  int64_t dilation_h = 1, dilation_w = 1, groups = 1;
};

// x: (batch, in_channels, height, width)
// weight: (out_channels, in_channels / groups, kernel_height, kernel_width)
// result: (batch, out_channels, out_height, out_width), sizes as in conv1d
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options = {});

struct ConvTranspose1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1;
  int64_t output_padding = 0;  // extra elements at the end; less than max(stride, dilation)
  int64_t groups = 1;
};

// The transpose of conv1d as a linear map (Dumoulin and Visin 2016, "A guide to convolution
// arithmetic for deep learning", chapter 4).
// x: (batch, in_channels, length)   weight: (in_channels, out_channels / groups, kernel)
// result length: (length - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options = {});

struct ConvTranspose2dOptions {
  int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0;
  int64_t dilation_h = 1, dilation_w = 1, output_padding_h = 0, output_padding_w = 0;
  int64_t groups = 1;
};

// x: (batch, in_channels, height, width)
// weight: (in_channels, out_channels / groups, kernel_height, kernel_width)
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options = {});

struct Im2colOptions {
  int64_t kernel_h = 1, kernel_w = 1;  // elements
  int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0;
  int64_t dilation_h = 1, dilation_w = 1;
};

// The windows that conv2d multiplies, as rows. Their product with the weight, reshaped to
// (out_channels, in_channels * kernel_height * kernel_width), is conv2d's result. x: (batch,
// channels, height, width) result: (batch, out_height * out_width, channels * kernel_h * kernel_w),
// zeros for the padding
Tensor im2col(const Tensor& x, const Im2colOptions& options);

struct Im2col1dOptions {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;  // elements along length
};

// x: (batch, channels, length)   result: (batch, out_length, channels * kernel)
Tensor im2col1d(const Tensor& x, const Im2col1dOptions& options);

// Adds up the overlapping windows of a transposed convolution, `stride` apart: the last step of
// conv_transpose1d. x: (batch, length, channels, kernel)   result: (batch, channels, (length - 1)
// stride + kernel)
Tensor col2im1d(const Tensor& x, int64_t stride);

}  // namespace rbee
