#pragma once
// Writes tensor cores' results as pixels of an image, with optional additions.

#include "backends/gpu/kernels/image_window.h"

namespace rbee {
namespace gpu {

template <class T>
struct alignas(2 * sizeof(T)) OutPair {
  T values[2];
};

// Adds two neighbours of an optional row to the sums.
template <class T>
RB_DEVICE void add_pair(const void* row, i64 at, float (&sums)[2]) {
  if (row == nullptr) return;
  const auto pair = *reinterpret_cast<const OutPair<T>*>(static_cast<const T*>(row) + at);
  sums[0] += load_value(pair.values[0]);
  sums[1] += load_value(pair.values[1]);
}

// Outputs `out`, which is even, and out + 1 of a pixel; nothing beyond y's ends.
template <class T>
RB_DEVICE void store_outputs(const ImageConvParams& p, int pixel, int out, float first,
                             float second) {
  if (pixel >= p.pixels || out >= p.outs) return;
  if (p.outs % 2 != 0) {
    store_result<T>(p, pixel, out, first);
    if (out + 1 < p.outs) store_result<T>(p, pixel, out + 1, second);
    return;
  }
  const i64 at = static_cast<i64>(pixel) * p.outs + out;
  const i64 image = divide(static_cast<u32>(pixel), p.out_pixels);
  float sums[2] = {first, second};
  add_pair<T>(p.bias, out, sums);
  add_pair<T>(p.channel_add, image * p.outs + out, sums);
  add_pair<T>(p.residual, at, sums);
  *reinterpret_cast<OutPair<T>*>(static_cast<T*>(p.y) + at) =
      OutPair<T>{{store_value<T>(sums[0]), store_value<T>(sums[1])}};
}

}  // namespace gpu
}  // namespace rbee
