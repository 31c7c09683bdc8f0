#pragma once
// Convolutions, pooling and upsampling over (batch, channels, height, width); a length is a height
// of 1. See backends/api/args_conv.h. Strides are in elements.

#include "backends/shared/strided_params.h"

namespace rbee {
namespace shared {

// One spatial axis of a convolution. An output pixel is linked to input pixels `from_step` apart
// by every `tap_step`-th tap.
struct ConvAxis {
  i64 size;  // of the input
  i64 kernel, stride, padding, dilation;
  i64 tap_step, from_step;
};

struct ConvParams {
  const void* x;
  const void* weight;
  const void* bias;  // null: none
  void* y;
  ConvAxis height, width;
  i64 x_strides[4], y_strides[4];
  // Between groups, and output channels, input channels, rows and columns of one group.
  i64 weight_group, weight_out, weight_in, weight_row, weight_column;
  i64 bias_step;
  i64 count;  // elements of y
  i64 first;  // element of the first thread
  Divider out_width, out_height, out_channels;
  Divider group_out;  // output channels of a group
  i32 group_in;       // input channels of a group
  u32 transposed;
};

// The same as a product of weights (channels, depth) and pixels (depth, pixels), whose depth is
// (input channels, rows, columns) of the kernel.
struct ConvTileParams {
  const void* x;
  const void* weight;
  const void* bias;
  void* y;
  i64 x_strides[4], y_strides[4];
  i64 weight_out;  // stride; the rest of the weight is contiguous
  i64 bias_step;
  i32 group_in, group_out;
  i32 pixels, depth;  // of all images; of the product
  i32 size[2], stride[2], padding[2], dilation[2];
  Divider out_width, out_height, kernel_width, kernel_height;
};

struct PoolParams {
  const void* x;
  void* y;
  i64 x_strides[4], y_strides[4];
  i64 kernel[2], stride[2];
  i64 count;  // elements of y
  i64 first;  // element of the first thread
  Divider out_width, out_height, channels;
};

struct UpsampleParams {
  const void* x;
  void* y;
  i64 x_strides[4], y_strides[4];
  i64 in[2], out[2];
  i64 count;  // elements of y
  i64 first;  // element of the first thread
  Divider out_width, out_height, channels;
  u32 align_corners;
};

}  // namespace shared
}  // namespace rbee
