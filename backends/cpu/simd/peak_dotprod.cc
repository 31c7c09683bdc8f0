#include <arm_neon.h>

#include "backends/cpu/peak.h"
#include "backends/cpu/simd/peak_loop.h"

namespace rbee::cpu {

double peak_int8_dotprod(int64_t rounds) {
  const int8x16_t a = vdupq_n_s8(3);
#define RB_START(i) int32x4_t sum##i = vdupq_n_s32(0), other##i = sum##i;
#define RB_STEP(i)                                                        \
  asm volatile("sdot %0.4s, %2.16b, %2.16b\n\tsdot %1.4s, %2.16b, %2.16b" \
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
