// Convolutions of images with the channels last in f16 and bf16 on Hopper (sm_90a), without a copy
// of the patches: as gemm_wgmma.cu, with 8 channels of a pixel gathered at a time. Small images
// share the depth out to more blocks.
#include "backends/cuda/kernels/image_store.h"
#include "backends/cuda/kernels/wgmma_rows.h"
#include "backends/gpu/kernels/gemm_order.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

// A thread's chunks of the patches: always the same part of a step, of pixels 32 apart.
template <class T>
class PatchCopy {
 public:
  RB_DEVICE PatchCopy(const ImageConvParams& p, int pixel0, int depth0)
      : p_(p), place_(p, static_cast<u32>(depth0) + thread_x() % kParts * 8) {
#pragma unroll
    for (int i = 0; i < kLines; ++i) windows_[i] = Window<T>(p, pixel0 + line(i));
  }
  // Queues the copies of the next step.
  RB_DEVICE void next(u32 to) {
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const T* from = windows_[i].run_at(p_, place_);
      copy_async16(to + swizzled(kRows, line(i), static_cast<int>(thread_x()) % kParts),
                   from != nullptr ? from : p_.x, from != nullptr ? 16 : 0);
    }
    place_.forward(p_, kStepDepth);
  }

 private:
  static constexpr int kParts = kSwizzleRow / 16;
  static constexpr int kLines = kRows * kParts / kThreads;
  RB_DEVICE static int line(int i) {
    return i * (kThreads / kParts) + static_cast<int>(thread_x()) / kParts;
  }

  const ImageConvParams& p_;
  FilterPlace place_;
  Window<T> windows_[kLines];
};

template <class T, int kOuts>
class WgmmaConv {
 public:
  RB_DEVICE WgmmaConv(const ImageConvParams& p, u32 base)
      : p_(p),
        base_(base),
        place_(tile_place<kRows, kOuts>(block_x(), p.pixels, p.outs)),
        first_(static_cast<int>(block_y()) * p.split_depth),
        end_(first_ + p.split_depth < p.depth ? first_ + p.split_depth : p.depth),
        patches_(p, place_.row, first_) {}

  RB_DEVICE void run() {
    float sums[kOuts / 2] = {};
    const int steps = (end_ - first_ + kStepDepth - 1) / kStepDepth;
#pragma unroll
    for (int step = 0; step < kStages - 2; ++step) fetch(step);
    for (int step = 0; step < steps; ++step) {
      wait_copies<kStages - 3>();
      publish_to_products();
      // This step is there for all, and the products of the step before last are done everywhere.
      barrier();
      start_products(sums, step);
      fetch(step + kStages - 2);
      warpgroup_wait<1>();
    }
    warpgroup_wait<0>();
    pin(sums);
    store(sums);
  }

 private:
  static constexpr int kStageBytes = (kRows + kOuts) * kSwizzleRow;

  RB_DEVICE u32 stage_of(int step) const {
    return base_ + static_cast<u32>(step % kStages * kStageBytes);
  }
  RB_DEVICE void fetch(int step) {
    const int depth0 = first_ + step * kStepDepth;
    if (depth0 < end_) {
      const u32 to = stage_of(step);
      patches_.next(to);
      copy_lines<kOuts>(to + kRows * kSwizzleRow, static_cast<const T*>(p_.weight), place_.out,
                        p_.outs, depth0, p_.depth);
    }
    commit_copies();  // empty groups too, so that counting them counts steps
  }
  RB_DEVICE void start_products(float (&sums)[kOuts / 2], int step) const {
    const u32 group = thread_x() / kGroup;
    const u32 x = stage_of(step) + group * kGroupRows * kSwizzleRow;
    const u32 weight = stage_of(step) + kRows * kSwizzleRow;
    pin(sums);
    warpgroup_begin();
#pragma unroll
    for (u32 k = 0; k < kStepDepth; k += 16) {
      multiply_rows<T>(sums, matrix_descriptor(x + 2 * k, 16, 1024),
                       matrix_descriptor(weight + 2 * k, 16, 1024));
    }
    warpgroup_commit();
  }
  RB_DEVICE void store(const float (&sums)[kOuts / 2]) const {
    const int thread = static_cast<int>(thread_x());
    const int pixel = place_.row + thread / 32 * 16 + thread % 32 / 4;
    const int out = place_.out + thread % 4 * 2;
#pragma unroll
    for (int i = 0; i < kOuts / 8; ++i) {
      store_pair(pixel, out + i * 8, sums[i * 4], sums[i * 4 + 1]);
      store_pair(pixel + 8, out + i * 8, sums[i * 4 + 2], sums[i * 4 + 3]);
    }
  }
  RB_DEVICE void store_pair(int pixel, int out, float first, float second) const {
    if (p_.partials == nullptr) {
      store_outputs<T>(p_, pixel, out, first, second);
    } else if (pixel < p_.pixels && out < p_.outs) {
      const i64 at = (static_cast<i64>(block_y()) * p_.pixels + pixel) * p_.outs + out;
      *reinterpret_cast<OutPair<float>*>(p_.partials + at) = OutPair<float>{{first, second}};
    }
  }

  const ImageConvParams& p_;
  const u32 base_;  // of the stages; 1024-byte aligned, as the swizzle counts rows by address
  const TilePlace place_;
  const int first_, end_;  // of the depth
  PatchCopy<T> patches_;
};

template <class T, int kOuts>
RB_DEVICE void image_conv(const ImageConvParams& p) {
  extern __shared__ u8 dynamic[];
  WgmmaConv<T, kOuts>(p, (shared_address(dynamic) + 1023) & ~1023u).run();
}

// Joins the blocks' parts of the depth: two outputs of a pixel a thread.
template <class T>
RB_DEVICE void image_conv_join(const ImageConvParams& p) {
  const i64 at = 2 * grid_thread();
  const i64 count = static_cast<i64>(p.pixels) * p.outs;
  if (at >= count) return;
  float sums[2] = {};
  for (int split = 0; split < p.splits; ++split)
    add_pair<float>(p.partials, split * count + at, sums);
  store_outputs<T>(p, static_cast<int>(at / p.outs), static_cast<int>(at % p.outs), sums[0],
                   sums[1]);
}

#define RB_CONV(dtype, T)                                                                    \
  RB_KERNEL(image_conv_##dtype##_wide, kThreads, ImageConvParams, (image_conv<T, 256>(p)))   \
  RB_KERNEL(image_conv_##dtype##_middle, kThreads, ImageConvParams, (image_conv<T, 160>(p))) \
  RB_KERNEL(image_conv_##dtype##_square, kThreads, ImageConvParams, (image_conv<T, 128>(p))) \
  RB_KERNEL(image_conv_##dtype##_join, kThreads, ImageConvParams, (image_conv_join<T>(p)))
RB_CONV(f16, f16)
RB_CONV(bf16, bf16)

}  // namespace gpu
}  // namespace rbee

#endif
