#pragma once
// The conversion of x to 8 bits with NEON.

#include <arm_neon.h>

#include "backends/cpu/linear/kernels.h"

namespace {

namespace panel = rbee::cpu;

// Below this 127 / x would overflow; such inputs count as zero.
constexpr float kTiny = 0x1p-120f;

// As quantize() of quantize_avx2.h, to the same bits.
void quantize(const float* x, int64_t in, const panel::QuantizedRow& out) {
  for (int64_t group = 0; group < in / 32; ++group) {
    float32x4_t v[8];
    uint32x4_t top = vdupq_n_u32(0);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      v[i] = vld1q_f32(x + group * 32 + i * 4);
      top = vmaxq_u32(top, vreinterpretq_u32_f32(vabsq_f32(v[i])));
    }
    const float most = __builtin_bit_cast(float, vmaxvq_u32(top));
    const float scale = most / 127.0f;
    const float inverse = most >= kTiny ? 127.0f / most : 0.0f;
    int sums[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const auto words = [&](int i) {
        const int32x4_t low = vcvtnq_s32_f32(vmulq_n_f32(v[i], inverse));
        const int32x4_t high = vcvtnq_s32_f32(vmulq_n_f32(v[i + 1], inverse));
        return vqmovn_high_s32(vqmovn_s32(low), high);
      };
      const int8x16_t bytes = vqmovn_high_s16(vqmovn_s16(words(4 * half)), words(4 * half + 2));
      vst1q_s8(out.q + group * 32 + 16 * half, bytes);
      sums[half] = vaddlvq_s8(bytes);
    }
    out.scale[group] = scale;
    out.sum32[group] = scale * static_cast<float>(sums[0] + sums[1]);
    out.sum16[2 * group] = scale * static_cast<float>(sums[0]);
    out.sum16[2 * group + 1] = scale * static_cast<float>(sums[1]);
  }
}

}  // namespace
