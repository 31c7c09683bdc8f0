// y = x * weight^T + bias in f16 and bf16 on Hopper (sm_90a): 128 x 256 and 128 x 128 tiles, two
// warpgroups of 64 rows each, both operands from shared memory under the 128-byte swizzle. All
// threads fetch with cp.async two steps ahead; one step's products are always under way while the
// next one's begin, so that tensor cores limit large products.
#include "backends/cuda/kernels/attention_wgmma.h"
#include "backends/cuda/kernels/gemm_store.h"
#include "backends/gpu/kernels/gemm_order.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;
constexpr int kGroup = 128;  // threads of a warpgroup
constexpr int kGroupRows = 64;
constexpr int kRows = 128;
constexpr int kStepDepth = 64;  // 128 bytes of a row
constexpr int kStages = 4;

#define RB_NAMES128                                                                               \
  RB_NAMES64                                                                                      \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86," \
  "%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,"  \
  "%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,"    \
  "%126,%127"

// c += a * b^T: 64 rows of a by 256 of b, 16 elements of each.
template <class T>
RB_DEVICE void multiply_rows(float (&c)[128], u64 a, u64 b);
#define RB_WIDE_PRODUCT(T, type)                                                      \
  template <>                                                                         \
  RB_DEVICE void multiply_rows<T>(float(&c)[128], u64 a, u64 b) {                     \
    asm volatile(                                                                     \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"                                 \
        "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" RB_NAMES128 \
        "}, %128, %129, p, 1, 1, 0, 0;\n}"                                            \
        : RB_F32(c, 0), RB_F32(c, 32), RB_F32(c, 64), RB_F32(c, 96)                   \
        : "l"(a), "l"(b), "r"(1));                                                    \
  }
RB_WIDE_PRODUCT(f16, "f16")
RB_WIDE_PRODUCT(bf16, "bf16")
// And by 128 of b.
template <class T>
RB_DEVICE void multiply_rows(float (&c)[64], u64 a, u64 b) {
  multiply_rows<T>(c, a, b, true);
}

// One step of kLines rows of a row-major matrix (lines, depth), from line0 and depth0 on; zeros
// beyond its ends.
template <int kLines, class T>
RB_DEVICE void copy_lines(u32 to, const T* from, int line0, int lines, int depth0, int depth) {
  constexpr int kParts = kSwizzleRow / 16;
  const int part = static_cast<int>(thread_x()) % kParts;
  const int column = depth0 + part * 8;
#pragma unroll
  for (int i = 0; i < kLines * kParts / kThreads; ++i) {
    const int line = i * (kThreads / kParts) + static_cast<int>(thread_x()) / kParts;
    const bool wanted = line0 + line < lines && column < depth;
    const i64 at = wanted ? static_cast<i64>(line0 + line) * depth + column : 0;
    copy_async16(to + swizzled(kLines, line, part), from + at, wanted ? 16 : 0);
  }
}

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
      copy_lines<kRows>(to, static_cast<const T*>(p.x), place.row, p.rows, step * kStepDepth,
                        p.depth);
      copy_lines<kOuts>(to + kRows * kSwizzleRow, static_cast<const T*>(p.weight), place.out,
                        p.outs, step * kStepDepth, p.depth);
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
      // This step is there for all, and the products of the step before last are done everywhere.
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
RB_DEVICE void gemm(const GemmParams& p) {
  extern __shared__ u8 dynamic[];
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
