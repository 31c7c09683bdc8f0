#include <immintrin.h>

#include "backends/cpu/peak.h"
#include "backends/cpu/simd/peak_loop.h"

namespace rbee::cpu {

double peak_f32_avx512(int64_t rounds) {
  const __m512 a = _mm512_set1_ps(0.999f);
#define RB_START(i) __m512 sum##i = a;
#define RB_STEP(i) asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sum##i) : "v"(a));
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 12 * 16 * 2;
}

double peak_int8_avx512(int64_t rounds) {
  const __m512i a = _mm512_set1_epi8(3);
#define RB_START(i) __m512i sum##i = a;
#define RB_STEP(i) asm volatile("vpdpbusd %1, %1, %0" : "+v"(sum##i) : "v"(a));
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 12 * 64 * 2;
}

}  // namespace rbee::cpu
