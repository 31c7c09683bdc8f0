#pragma once
// Shared by products of two operands in shared memory on Hopper: 128 rows by 256, 160 or 128,
// steps of 64 elements under the 128-byte swizzle; all threads copy them with cp.async.

#include "backends/cuda/kernels/attention_wgmma.h"
#include "backends/gpu/kernels/gemm_operand.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;
constexpr int kGroup = 128;  // threads of a warpgroup
constexpr int kGroupRows = 64;
constexpr int kRows = 128;
constexpr int kStepDepth = 64;  // 128 bytes of a row
constexpr int kStages = 4;

// c += a * b^T: 64 rows of a by 256, 160 or 128 of b, 16 elements of each.
template <class T, int kCount>
RB_DEVICE void multiply_rows(float (&c)[kCount], u64 a, u64 b) {
  multiply_rows<T>(c, a, b, true);
}

// One step of kLines lines, from line0 and depth0 on; zeros beyond the operand's ends.
template <int kLines>
RB_DEVICE void copy_lines(u32 to, const Operand& from, int line0, int depth0) {
  constexpr int kParts = kSwizzleRow / 16;
  const int part = static_cast<int>(thread_x()) % kParts;
  const int column = depth0 + part * 8;
#pragma unroll
  for (int i = 0; i < kLines * kParts / kThreads; ++i) {
    const int line = i * (kThreads / kParts) + static_cast<int>(thread_x()) / kParts;
    const bool wanted = line0 + line < from.lines && column < from.depth;
    const i64 at = wanted ? (static_cast<i64>(line0 + line) * from.pitch + column) * 2 : 0;
    const u8* source = static_cast<const u8*>(from.data) + at;
    copy_async16(to + swizzled(kLines, line, part), source, wanted ? 16 : 0);
  }
}

}  // namespace gpu
}  // namespace rbee

#endif
