#include <arm_neon.h>

#include "backends/cpu/peak.h"
#include "backends/cpu/simd/peak_loop.h"

namespace rbee::cpu {

double peak_int8_i8mm(int64_t rounds) {
  const int8x16_t a = vdupq_n_s8(3);
#define RB_START(i) int32x4_t sum##i = vdupq_n_s32(0), other##i = sum##i;
#define RB_STEP(i)                                                          \
  asm volatile("smmla %0.4s, %2.16b, %2.16b\n\tsmmla %1.4s, %2.16b, %2.16b" \
               : "+w"(sum##i), "+w"(other##i)                               \
               : "w"(a));
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 24 * 32 * 2;
}

double peak_bf16_i8mm(int64_t rounds) {
  const bfloat16x8_t a = vreinterpretq_bf16_u16(vdupq_n_u16(0x3f00));
#define RB_START(i) float32x4_t sum##i = vdupq_n_f32(0), other##i = sum##i;
#define RB_STEP(i)                                                        \
  asm volatile("bfmmla %0.4s, %2.8h, %2.8h\n\tbfmmla %1.4s, %2.8h, %2.8h" \
               : "+w"(sum##i), "+w"(other##i)                             \
               : "w"(a));
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 24 * 16 * 2;
}

}  // namespace rbee::cpu
