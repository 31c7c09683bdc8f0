// Convolutions of images with the channels last in f16 and bf16 on AMD's matrix instructions, or
// dot products if a target has none: threads gather a step of the patches one step ahead into
// registers, 8 channels of a pixel at a time. See gemm_steps.h.
#include "backends/gpu/kernels/image_window.h"
#include "backends/rocm/kernels/gemm_steps.h"

namespace rbee {
namespace gpu {

// A thread's part of the patches: half a step of pixel thread_x() / 2 of a tile.
template <class T>
class PatchStage {
 public:
  RB_DEVICE PatchStage(const ImageConvParams& p, int pixel0)
      : p_(p),
        window_(p, pixel0 + static_cast<int>(thread_x()) / 2),
        place_(p, thread_x() % 2 * kStaged) {}
  // Reads the next step's part into registers.
  RB_DEVICE void load(int) {
    FilterPlace at = place_;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const T* from = window_.run_at(p_, at);
      packs_[i] = from != nullptr ? load128(from) : Pack<T>{};
      at.forward(p_, Pack<T>::kCount);
    }
    place_.forward(p_, kStepDepth);
  }
  // Writes it to the operand's place in shared memory.
  RB_DEVICE void store(u8* to) const {
    const int line = static_cast<int>(thread_x()) / 2;
    const int chunk = static_cast<int>(thread_x()) % 2 * kPacks;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      *reinterpret_cast<Pack<T>*>(to + chunk_offset(line, chunk + i)) = packs_[i];
    }
  }

 private:
  static constexpr int kPacks = kStaged / Pack<T>::kCount;
  const ImageConvParams& p_;
  Window<T> window_;
  FilterPlace place_;
  Pack<T> packs_[kPacks] = {};
};

template <class Tile, class T>
RB_DEVICE void image_conv(const ImageConvParams& p) {
  const TilePlace place = tile_place<Tile::kLines, Tile::kLines>(block_x(), p.pixels, p.outs);
  PatchStage<T> patches(p, place.row);
  OperandStage<T> weight(dense_operand(p.weight, p.outs, p.depth), place.out);
  typename Tile::Sums sums = {};
  multiply_steps<Tile, T>(sums, patches, weight, p.depth);
  each_result<Tile>(place, sums, [&](int pixel, int out, float sum) {
    if (pixel < p.pixels && out < p.outs) store_result<T>(p, pixel, out, sum);
  });
}

#define RB_CONV(dtype, T)                                                     \
  RB_KERNEL(image_conv_##dtype##_large, LargeTile::kThreads, ImageConvParams, \
            (image_conv<LargeTile, T>(p)))                                    \
  RB_KERNEL(image_conv_##dtype##_small, SmallTile::kThreads, ImageConvParams, \
            (image_conv<SmallTile, T>(p)))
RB_CONV(f16, f16)
RB_CONV(bf16, bf16)

}  // namespace gpu
}  // namespace rbee
