#pragma once
// What products of two operands in shared memory on Hopper have in common: 128 rows by 256, 160 or
// 128, steps of 64 elements under the 128-byte swizzle, copied by all threads with cp.async.

#include "backends/cuda/kernels/attention_wgmma.h"

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

#define RB_NAMES80 RB_NAMES64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"

// And by 160 of b: channels of images often come in multiples of it.
template <class T>
RB_DEVICE void multiply_rows(float (&c)[80], u64 a, u64 b);
#define RB_MIDDLE_PRODUCT(T, type)                                                   \
  template <>                                                                        \
  RB_DEVICE void multiply_rows<T>(float(&c)[80], u64 a, u64 b) {                     \
    asm volatile(                                                                    \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %82, 0;\n"                                 \
        "wgmma.mma_async.sync.aligned.m64n160k16.f32." type "." type " {" RB_NAMES80 \
        "}, %80, %81, p, 1, 1, 0, 0;\n}"                                             \
        : RB_F32(c, 0), RB_F32(c, 32), RB_F16(c, 64)                                 \
        : "l"(a), "l"(b), "r"(1));                                                   \
  }
RB_MIDDLE_PRODUCT(f16, "f16")
RB_MIDDLE_PRODUCT(bf16, "bf16")
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

}  // namespace gpu
}  // namespace rbee

#endif
