// Convolutions as products of 64 x 64 tiles of channels and pixels, without a copy of the windows:
// threads gather a tile's pixels while they stage it. Shared memory's bandwidth limits
// it.
#include "backends/gpu/kernels/tile_product.h"
#include "backends/shared/conv_params.h"

namespace rbee {
namespace gpu {

template <class T>
struct LoadWeight {
  const T* data;  // of the group
  i64 line_stride;
  RB_DEVICE float operator()(i64 channel, i64 k) const {
    return load_value(data[channel * line_stride + k]);
  }
};

// The windows of a tile's pixels. A thread stages the same pixel all along, its number modulo the
// tile's size, so that it computes the start of the pixel's window once.
template <class T>
struct LoadWindow {
  const ConvTileParams& p;
  const T* image;  // first channel of the group
  i32 row, column;

  RB_DEVICE LoadWindow(const ConvTileParams& params, const T* group, u32 first_pixel) : p(params) {
    const u32 pixel = first_pixel + thread_x() % kTile;
    const u32 line = divide(pixel, p.out_width);
    const u32 of_image = divide(line, p.out_height);
    image = group + of_image * p.x_strides[0];
    row = static_cast<i32>(line - of_image * p.out_height.divisor) * p.stride[0] - p.padding[0];
    column = static_cast<i32>(pixel - line * p.out_width.divisor) * p.stride[1] - p.padding[1];
  }
  RB_DEVICE float operator()(i64, i64 k) const {
    const u32 line = divide(static_cast<u32>(k), p.kernel_width);
    const u32 channel = divide(line, p.kernel_height);
    const i32 tap_row = static_cast<i32>(line - channel * p.kernel_height.divisor);
    const i32 tap_column = static_cast<i32>(static_cast<u32>(k) - line * p.kernel_width.divisor);
    const i32 from_row = row + tap_row * p.dilation[0];
    const i32 from_column = column + tap_column * p.dilation[1];
    if (from_row < 0 || from_row >= p.size[0]) return 0.0f;
    if (from_column < 0 || from_column >= p.size[1]) return 0.0f;
    return load_value(
        image[channel * p.x_strides[1] + from_row * p.x_strides[2] + from_column * p.x_strides[3]]);
  }
};

template <class T>
struct StorePixel {
  const ConvTileParams& p;
  i64 first_channel;  // of the group
  RB_DEVICE void operator()(i64 channel, i64 pixel, float sum) const {
    const u32 line = divide(static_cast<u32>(pixel), p.out_width);
    const u32 image = divide(line, p.out_height);
    const i64 row = line - image * p.out_height.divisor;
    const i64 column = static_cast<u32>(pixel) - line * p.out_width.divisor;
    channel += first_channel;
    if (p.bias != nullptr) {
      sum += load_value(static_cast<const T*>(p.bias)[channel * p.bias_step]);
    }
    static_cast<T*>(p.y)[image * p.y_strides[0] + channel * p.y_strides[1] + row * p.y_strides[2] +
                         column * p.y_strides[3]] = store_value<T>(sum);
  }
};

// Block x: a tile of channels and one of pixels; tiles of channels are adjacent, so that
// they share pixels in the cache. Block y: a group.
template <class T>
RB_DEVICE void conv_tile(const ConvTileParams& p) {
  const i64 group = block_y();
  const u32 channel_tiles = (static_cast<u32>(p.group_out) + kTile - 1) / kTile;
  const u32 first_channel = block_x() % channel_tiles * kTile;
  const u32 first_pixel = block_x() / channel_tiles * kTile;
  const T* x = static_cast<const T*>(p.x) + group * p.group_in * p.x_strides[1];
  const T* weight = static_cast<const T*>(p.weight) + group * p.group_out * p.weight_out;
  tile_product<float>(ProductShape{p.group_out, p.pixels, p.depth, true, false}, first_channel,
                      first_pixel, LoadWeight<T>{weight, p.weight_out},
                      LoadWindow<T>(p, x, first_pixel), StorePixel<T>{p, group * p.group_out});
}

#define RB_CONV(dtype, T) \
  RB_KERNEL(conv_tile_##dtype, kTileThreads, ConvTileParams, (conv_tile<T>(p)))
RB_EACH_FLOAT(RB_CONV)

}  // namespace gpu
}  // namespace rbee
