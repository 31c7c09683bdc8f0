#pragma once
// The element of a (batch, channels, height, width) result that a thread computes, and the type of
// its sums.

#include "backends/gpu/portable.h"
#include "backends/shared/strided_params.h"

namespace rbee {
namespace gpu {

constexpr int kPlaneThreads = 256;

// C: Compute of the elements' type. Integers keep the low bits.
template <class C>
struct SumOf {
  using type = u64;
};
template <>
struct SumOf<float> {
  using type = float;
};
template <>
struct SumOf<double> {
  using type = double;
};

struct Pixel {
  i64 image, channel, row, column;

  RB_DEVICE Pixel(i64 index, const Divider& channels, const Divider& height, const Divider& width) {
    const i64 line = divide_any(index, width);
    column = index - line * width.divisor;
    const i64 plane = divide_any(line, height);
    row = line - plane * height.divisor;
    image = divide_any(plane, channels);
    channel = plane - image * channels.divisor;
  }
  RB_DEVICE i64 plane(const i64 (&strides)[4]) const {
    return image * strides[0] + channel * strides[1];
  }
  RB_DEVICE i64 offset(const i64 (&strides)[4]) const {
    return plane(strides) + row * strides[2] + column * strides[3];
  }
};

}  // namespace gpu
}  // namespace rbee
