// Convolutions of images with the channels last in f16 and bf16 on tensor cores, without a copy of
// the patches: threads gather each step of 32 elements of the filters into shared memory several
// steps ahead, 8 channels of a pixel at a time. The rest is as in gemm.cu.
#include "backends/cuda/kernels/image_store.h"
#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/gpu/kernels/gemm_order.h"

namespace rbee {
namespace gpu {

using LargeTile = MmaTile<128, 128, 2, 4, 4>;
using SmallTile = MmaTile<64, 64, 2, 2, 4>;

// A thread's chunks of the patches: always the same chunk of a step, for pixels that are a fourth
// of the threads apart.
template <class Tile, class T>
class PatchStage {
 public:
  RB_DEVICE PatchStage(const ImageConvParams& p, int pixel0)
      : p_(p), place_(p, thread_x() % 4 * 8) {
#pragma unroll
    for (int i = 0; i < kLines; ++i) windows_[i] = Window<T>(p, pixel0 + line(i));
  }
  // Queues the copies of the next step.
  RB_DEVICE void copy(u32 to) {
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const T* from = windows_[i].run_at(p_, place_);
      copy_async16(to + chunk_offset(line(i), static_cast<int>(thread_x()) % 4),
                   from != nullptr ? from : p_.x, from != nullptr ? 16 : 0);
    }
    place_.forward(p_, kStepDepth);
  }

 private:
  static constexpr int kLines = Tile::kRows * 4 / Tile::kThreads;
  RB_DEVICE static int line(int i) {
    return i * (Tile::kThreads / 4) + static_cast<int>(thread_x()) / 4;
  }

  const ImageConvParams& p_;
  FilterPlace place_;
  Window<T> windows_[kLines];
};

template <class Tile, class T>
RB_DEVICE void image_conv(const ImageConvParams& p) {
  extern __shared__ __align__(128) u8 stages[];
  const TilePlace place = tile_place<Tile::kRows, Tile::kOuts>(block_x(), p.pixels, p.outs);
  const Operand weight = dense_operand(p.weight, p.outs, p.depth);
  PatchStage<Tile, T> patches(p, place.row);
  const auto copy = [&](int step, u32 to) {
    patches.copy(to);
    stage_rows<Tile::kOuts, Tile::kThreads>(to + Tile::kRows * kStepBytes, weight, place.out,
                                            step * kStepDepth);
  };
  float sums[Tile::kM][Tile::kN][4] = {};
  multiply_steps<Tile, T>(sums, shared_address(stages), p.depth, copy);
  each_pair<Tile>(place.row, place.out, sums, [&](int pixel, int out, float first, float second) {
    store_outputs<T>(p, pixel, out, first, second);
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
