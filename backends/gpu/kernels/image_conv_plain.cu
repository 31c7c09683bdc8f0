// Convolutions of images with the channels last, for every float type of both operands and any
// strides: tiles of 64 pixels by 64 outputs; threads gather the patches while they stage them.
// Shared memory's bandwidth limits it; the vendors' kernels have matrix instructions.
#include "backends/gpu/kernels/image_window.h"
#include "backends/gpu/kernels/tile_product.h"

namespace rbee {
namespace gpu {

template <class C>
struct LoadFilter {
  const ImageConvParams& p;
  RB_DEVICE C operator()(i64 out, i64 k) const {
    const i64 at = out * p.depth + k;
    switch (p.weight_type) {
      case 0:
        return static_cast<C>(static_cast<const float*>(p.weight)[at]);
      case 1:
        return static_cast<C>(load_value(static_cast<const f16*>(p.weight)[at]));
      case 2:
        return static_cast<C>(load_value(static_cast<const bf16*>(p.weight)[at]));
      case 3:
        return static_cast<C>(static_cast<const double*>(p.weight)[at]);
      default:
        return static_cast<C>(load_value(static_cast<const f8e4m3*>(p.weight)[at]));
    }
  }
};

template <class T>
struct LoadPatch {
  const ImageConvParams& p;
  RB_DEVICE Compute<T> operator()(i64 pixel, i64 k) const {
    const Window<T> window(p, pixel);
    const T* from = window.at(p, FilterPlace(p, static_cast<u32>(k)));
    return from == nullptr ? Compute<T>(0) : load_value(*from);
  }
};

template <class T>
struct StoreSum {
  const ImageConvParams& p;
  RB_DEVICE void operator()(i64 pixel, i64 out, Compute<T> sum) const {
    store_result<T>(p, pixel, out, sum);
  }
};

// Tiles of outputs are adjacent, so that they share pixels in the cache.
template <class T>
RB_DEVICE void image_conv(const ImageConvParams& p) {
  const u32 across = (static_cast<u32>(p.outs) + kTile - 1) / kTile;
  const i64 first_pixel = static_cast<i64>(block_x() / across) * kTile;
  const i64 first_out = block_x() % across * kTile;
  tile_product<Compute<T>>(ProductShape{p.pixels, p.outs, p.depth, true, true}, first_pixel,
                           first_out, LoadPatch<T>{p}, LoadFilter<Compute<T>>{p}, StoreSum<T>{p});
}

#define RB_CONV(dtype, T) \
  RB_KERNEL(image_conv_##dtype, kTileThreads, ImageConvParams, (image_conv<T>(p)))
RB_EACH_FLOAT_TYPE(RB_CONV)

}  // namespace gpu
}  // namespace rbee
