#include <immintrin.h>

#include "backends/cpu/peak.h"
#include "backends/cpu/simd/peak_loop.h"

namespace rbee::cpu {

double peak_f32_avx2(int64_t rounds) {
  const __m256 a = _mm256_set1_ps(0.999f);
#define RB_START(i) __m256 sum##i = a;
#define RB_STEP(i) asm volatile("vfmadd231ps %1, %1, %0" : "+x"(sum##i) : "x"(a));
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 12 * 8 * 2;
}

// maddubs, madd and add: the shortest exact 8-bit dot product that AVX2 has.
double peak_int8_avx2(int64_t rounds) {
  const __m256i a = _mm256_set1_epi8(3);
  const __m256i ones = _mm256_set1_epi16(1);
#define RB_START(i) __m256i sum##i = a;
#define RB_STEP(i)                                                                   \
  {                                                                                  \
    __m256i product;                                                                 \
    asm volatile("vpmaddubsw %2, %2, %1\n\tvpmaddwd %3, %1, %1\n\tvpaddd %1, %0, %0" \
                 : "+x"(sum##i), "=&x"(product)                                      \
                 : "x"(a), "x"(ones));                                               \
  }
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 12 * 32 * 2;
}

}  // namespace rbee::cpu
