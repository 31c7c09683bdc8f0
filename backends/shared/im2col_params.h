#pragma once
// Windows of convolutions as rows, and back: see Im2colArgs and Col2im1dArgs. Strides are in
// elements.

#include "backends/shared/strided_params.h"

namespace rbee {
namespace shared {

struct Im2colParams {
  const void* x;
  void* y;
  i64 x_strides[4], y_strides[3];
  i64 size[2], stride[2], padding[2], dilation[2];  // along height and width
  i64 count;                                        // elements of y
  i64 first;                                        // element of the first thread
  Divider kernel_width, kernel_height, channels, out_width, out_height;
};

struct Col2im1dParams {
  const void* x;
  void* y;
  i64 x_strides[4], y_strides[3];
  i64 length, kernel, stride;
  i64 count;  // elements of y
  i64 first;  // element of the first thread
  Divider out_length, channels;
};

}  // namespace shared
}  // namespace rbee
