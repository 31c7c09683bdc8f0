#include <arm_neon.h>

#include "backends/cpu/peak.h"
#include "backends/cpu/simd/peak_loop.h"

namespace rbee::cpu {

// 24 sums: four units times their latency is up to 16.
double peak_f32_neon(int64_t rounds) {
  const float32x4_t a = vdupq_n_f32(0.999f);
#define RB_START(i) float32x4_t sum##i = a, other##i = a;
#define RB_STEP(i)                                                    \
  asm volatile("fmla %0.4s, %2.4s, %2.4s\n\tfmla %1.4s, %2.4s, %2.4s" \
               : "+w"(sum##i), "+w"(other##i)                         \
               : "w"(a));
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 24 * 4 * 2;
}

// smull, smlal2 and sadalp: the shortest exact 8-bit dot product that NEON has.
double peak_int8_neon(int64_t rounds) {
  const int8x16_t a = vdupq_n_s8(3);
#define RB_START(i) int32x4_t sum##i = vdupq_n_s32(0);
#define RB_STEP(i)                                                                         \
  {                                                                                        \
    int16x8_t product;                                                                     \
    asm volatile(                                                                          \
        "smull %1.8h, %2.8b, %2.8b\n\tsmlal2 %1.8h, %2.16b, %2.16b\n\tsadalp %0.4s, %1.8h" \
        : "+w"(sum##i), "=&w"(product)                                                     \
        : "w"(a));                                                                         \
  }
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 12 * 16 * 2;
}

}  // namespace rbee::cpu
