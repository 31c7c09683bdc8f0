#pragma once

#include "rbee/tensor/tensor.h"

namespace rbee {

// Resizing of the spatial axes, up or down, without a low-pass filter. Sizes are in elements, at
// least 1 and at most 2^30; an input without elements along a spatial axis is an error. All throw
// invalid_argument.

// y[i] = x[floor(i * in / out)]; any plain dtype
//   x: (batch, channels, length)   result: (batch, channels, out_length)
Tensor upsample_nearest1d(const Tensor& x, int64_t out_length);
//   x: (batch, channels, height, width)   result: (batch, channels, out_height, out_width)
Tensor upsample_nearest2d(const Tensor& x, int64_t out_height, int64_t out_width);

enum class Corners : uint8_t {
  free,     // pixels are areas: the position of output i is (i + 0.5) * in / out - 0.5, at least 0
  aligned,  // pixels are points: i * (in - 1) / (out - 1), 0 when out is 1
};

// Interpolates between the four nearest pixels, as PyTorch does; float dtypes.
//   x: (batch, channels, height, width)   result: (batch, channels, out_height, out_width)
Tensor upsample_bilinear2d(const Tensor& x, int64_t out_height, int64_t out_width,
                           Corners corners = Corners::free);

}  // namespace rbee
