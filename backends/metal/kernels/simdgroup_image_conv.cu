// Convolutions of images with the channels last in f16 and bf16: see simdgroup_product.h. Threads
// gather the patches while they stage them, 8 channels of a pixel at a time.
#include "backends/gpu/kernels/image_window.h"
#include "backends/metal/kernels/simdgroup_product.h"

namespace rbee {
namespace gpu {

// A step of patches: lines are pixels of y.
template <class T>
struct PatchRuns {
  const ImageConvParams& p;
  RB_DEVICE bool across() const { return false; }
  template <class S>
  RB_DEVICE void read(i64 pixel, i64 k, RunWords<S>& to) const {
    const Window<T> window(p, pixel);
    const T* const from = window.run_at(p, FilterPlace(p, static_cast<u32>(k)));
    if (from != nullptr) read_plain(from, to);
  }
};

template <class S, class T, int kRows>
RB_DEVICE void image_conv_simdgroup(const ImageConvParams& p) {
  const TilePlace tile = tile_place<kRows, kProductOuts>(block_x(), p.pixels, p.outs);
  simdgroup_product<S, kRows>(
      ProductPlace{tile.row, tile.out, p.pixels, p.outs, p.depth}, PatchRuns<T>{p},
      PlainRuns<T>{static_cast<const T*>(p.weight), p.depth},
      [&](i64 pixel, i64 out, float sum) { store_result<T>(p, pixel, out, sum); });
}

#define RB_CONV(dtype, S, T)                                              \
  RB_KERNEL(image_conv_##dtype##_large, kProductThreads, ImageConvParams, \
            (image_conv_simdgroup<S, T, 64>(p)))                          \
  RB_KERNEL(image_conv_##dtype##_small, kProductThreads, ImageConvParams, \
            (image_conv_simdgroup<S, T, 32>(p)))
RB_CONV(f16, f16, f16)
RB_CONV(bf16, float, bf16)

}  // namespace gpu
}  // namespace rbee
