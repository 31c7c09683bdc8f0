#pragma once
// Finds the input of a pixel's filters, and the additions to their sums, for kernels of image
// convolutions.

#include "backends/gpu/portable.h"
#include "backends/shared/image_params.h"

namespace rbee {
namespace gpu {

// An element of a filter: its row, column and channel.
struct FilterPlace {
  i32 row, column, channel;

  RB_DEVICE FilterPlace(const ImageConvParams& p, u32 k) {
    const u32 tap = divide(k, p.by_channels);
    channel = static_cast<i32>(k - tap * p.by_channels.divisor);
    row = static_cast<i32>(divide(tap, p.by_kernel_w));
    column = static_cast<i32>(tap) - row * p.kernel_w;
  }
  RB_DEVICE void forward(const ImageConvParams& p, int by) {
    channel += by;
    while (channel >= p.channels) {
      channel -= p.channels;
      if (++column < p.kernel_w) continue;
      column = 0;
      ++row;
    }
  }
};

// The first pixel under the filters of an output pixel; far outside for pixels that y does not
// have.
template <class T>
struct Window {
  const T* image;
  i32 row, column;

  Window() = default;
  RB_DEVICE Window(const ImageConvParams& p, i64 number_of_pixel) {
    const bool within = number_of_pixel < p.pixels;
    const u32 pixel = within ? static_cast<u32>(number_of_pixel) : 0;
    const u32 line = divide(pixel, p.out_width);
    const u32 number = divide(line, p.out_height);
    image = static_cast<const T*>(p.x) + number * p.x_strides[0];
    row = static_cast<i32>(line - number * p.out_height.divisor) * p.stride - p.padding[0];
    column = static_cast<i32>(pixel - line * p.out_width.divisor) * p.stride - p.padding[1];
    if (!within) row = -(1 << 30);
  }
  RB_DEVICE bool inside(const ImageConvParams& p, const FilterPlace& place) const {
    return place.row < p.kernel_h &&
           static_cast<u32>(row + place.row) < static_cast<u32>(p.size[0]) &&
           static_cast<u32>(column + place.column) < static_cast<u32>(p.size[1]);
  }
  // The place of the filters' element in the image; null in the padding and beyond the filters.
  RB_DEVICE const T* at(const ImageConvParams& p, const FilterPlace& place) const {
    if (!inside(p, place)) return nullptr;
    const i32 from_row = row + place.row, from_column = column + place.column;
    return image + (from_row >> p.enlarged) * p.x_strides[1] +
           (from_column >> p.enlarged) * p.x_strides[2] + place.channel * p.x_strides[3];
  }
  // The same for images whose channels adjoin, counted in 32 bits.
  RB_DEVICE const T* run_at(const ImageConvParams& p, const FilterPlace& place) const {
    const u32 from_row = static_cast<u32>((row + place.row) >> p.enlarged);
    const u32 from_column = static_cast<u32>((column + place.column) >> p.enlarged);
    const u32 offset = from_row * static_cast<u32>(p.row_stride) +
                       from_column * static_cast<u32>(p.pixel_stride) +
                       static_cast<u32>(place.channel);
    return inside(p, place) ? image + static_cast<i32>(offset) : nullptr;
  }
};

// The additions to the sum of one pixel and output channel.
template <class T>
RB_DEVICE Compute<T> addends(const ImageConvParams& p, u32 pixel, i64 out) {
  const u32 line = divide(pixel, p.out_width);
  const u32 image = divide(line, p.out_height);
  Compute<T> sum = 0;
  if (p.bias != nullptr) sum += load_value(static_cast<const T*>(p.bias)[out * p.bias_step]);
  if (p.channel_add != nullptr) {
    const i64 at = image * p.channel_strides[0] + out * p.channel_strides[1];
    sum += load_value(static_cast<const T*>(p.channel_add)[at]);
  }
  if (p.residual != nullptr) {
    const i64 row = line - image * p.out_height.divisor;
    const i64 column = pixel - line * p.out_width.divisor;
    const i64 at = image * p.residual_strides[0] + row * p.residual_strides[1] +
                   column * p.residual_strides[2] + out * p.residual_strides[3];
    sum += load_value(static_cast<const T*>(p.residual)[at]);
  }
  return sum;
}

template <class T>
RB_DEVICE void store_result(const ImageConvParams& p, i64 pixel, i64 out, Compute<T> sum) {
  T* y = static_cast<T*>(p.y) + pixel * p.outs + out;
  *y = store_value<T>(sum + addends<T>(p, static_cast<u32>(pixel), out));
}

}  // namespace gpu
}  // namespace rbee
