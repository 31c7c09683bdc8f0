// y = x * weight^T + bias in f16 and bf16 on Hopper (sm_90a): 128 x 256 and 128 x 128 tiles, two
// warpgroups of 64 rows each, both operands from shared memory under the 128-byte swizzle. All
// threads fetch with cp.async two steps ahead. One step's products are still under way when the
// next one's begin, so tensor cores limit large products.
#include "backends/cuda/kernels/gemm_store.h"
#include "backends/cuda/kernels/wgmma_rows.h"
#include "backends/gpu/kernels/gemm_order.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

template <class T, int kOuts>
struct WgmmaGemm {
  static constexpr int kStageBytes = (kRows + kOuts) * kSwizzleRow;
  const GemmParams& p;
  const TilePlace place;
  const u32 base;  // of the stages; 1024-byte aligned, as the swizzle counts rows by address

  RB_DEVICE u32 stage_of(int step) const {
    return base + static_cast<u32>(step % kStages * kStageBytes);
  }
  RB_DEVICE void fetch(int step) const {
    if (step * kStepDepth < p.depth) {
      const u32 to = stage_of(step);
      copy_lines<kRows>(to, x_of(p), place.row, step * kStepDepth);
      copy_lines<kOuts>(to + kRows * kSwizzleRow, weight_of(p), place.out, step * kStepDepth);
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
  template <class Y>
  RB_DEVICE void store(const float (&sums)[kOuts / 2]) const {
    const int thread = static_cast<int>(thread_x());
    const int row = place.row + thread / 32 * 16 + thread % 32 / 4;
    const int out = place.out + thread % 4 * 2;
#pragma unroll
    for (int i = 0; i < kOuts / 8; ++i) {
      store_pair<Y>(p, row, out + i * 8, sums[i * 4], sums[i * 4 + 1]);
      store_pair<Y>(p, row + 8, out + i * 8, sums[i * 4 + 2], sums[i * 4 + 3]);
    }
  }

  RB_DEVICE void run() const {
    float sums[kOuts / 2] = {};
    const int steps = (p.depth + kStepDepth - 1) / kStepDepth;
#pragma unroll
    for (int step = 0; step < kStages - 2; ++step) fetch(step);
    for (int step = 0; step < steps; ++step) {
      wait_copies<kStages - 3>();
      publish_to_products();
      // All threads have this step, and the products of the step before last are done everywhere.
      barrier();
      start_products(sums, step);
      fetch(step + kStages - 2);
      warpgroup_wait<1>();
    }
    warpgroup_wait<0>();
    pin(sums);
    if (p.y_type == 0) {
      store<float>(sums);
    } else if (p.y_type == 1) {
      store<f16>(sums);
    } else {
      store<bf16>(sums);
    }
  }
};

template <class T, int kOuts>
RB_DEVICE void gemm(const GemmParams& all) {
  extern __shared__ u8 dynamic[];
  const GemmParams p = matrix_of(all, block_y());
  WgmmaGemm<T, kOuts>{p, tile_place<kRows, kOuts>(block_x(), p.rows, p.outs),
                      (shared_address(dynamic) + 1023) & ~1023u}
      .run();
}

RB_KERNEL(gemm_f16_wide, kThreads, GemmParams, (gemm<f16, 256>(p)))
RB_KERNEL(gemm_f16_square, kThreads, GemmParams, (gemm<f16, 128>(p)))
RB_KERNEL(gemm_bf16_wide, kThreads, GemmParams, (gemm<bf16, 256>(p)))
RB_KERNEL(gemm_bf16_square, kThreads, GemmParams, (gemm<bf16, 128>(p)))

}  // namespace gpu
}  // namespace rbee

#endif
