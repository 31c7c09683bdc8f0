#pragma once
// Image models keep the channels of a pixel together: (batch, height, width, channels).

#include "backends/api/view.h"

namespace rbee {

// y[n, i, j, o] = sum over r, s, c of weight[o, r, s, c] * pixel(n, i * stride - pad_top + r,
//                                                                j * stride - pad_left + s)[c]
//                 + bias[o] + channel_add[n, o] + residual[n, i, j, o]
// where pixel(n, i, j) is x[n, i, j], or, with `upsample`, x[n, i / 2, j / 2] in an image of twice
// the size; outside it is 0. y's size determines the padding below and to the right.
//   x: (batch, height, width, in), any strides   y: (batch, out_height, out_width, out), contiguous
//   weight: (out, kernel_height, kernel_width, in), a plain float type or q8_0 (then `in` is a
//   multiple of 32, and x may be rounded to 8 bits or bf16), contiguous, or packed as a matrix
//   bias: (out); channel_add: (batch, out); residual: as y, any strides; each x's dtype, optional
struct ImageConvArgs {
  View x, weight, bias, channel_add, residual, y;
  int64_t stride = 1;
  int64_t pad_top = 0, pad_left = 0;
  bool upsample = false;
};

enum class NormActivation : uint8_t { none, silu };

// y = act((x - mean) / sqrt(var + eps) * weight + bias), mean and variance over the pixels of an
// image and the channels of a group (Wu and He 2018)
//   x: (batch, pixels, channels), any strides   y: the same, contiguous
//   weight, bias: (channels), x's dtype, optional
struct ImageGroupNormArgs {
  View x, weight, bias, y;
  int32_t groups = 1;
  float eps = 1e-5f;
  NormActivation activation = NormActivation::none;
};

}  // namespace rbee
