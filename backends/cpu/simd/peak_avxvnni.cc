#include <immintrin.h>

#include "backends/cpu/peak.h"
#include "backends/cpu/simd/peak_loop.h"

namespace rbee::cpu {

double peak_int8_avxvnni(int64_t rounds) {
  const __m256i a = _mm256_set1_epi8(3);
#define RB_START(i) __m256i sum##i = a;
#define RB_STEP(i) asm volatile("%{vex%} vpdpbusd %1, %1, %0" : "+x"(sum##i) : "x"(a));
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 12 * 32 * 2;
}

}  // namespace rbee::cpu
