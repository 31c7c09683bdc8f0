#include <immintrin.h>

#include "backends/cpu/peak.h"

namespace rbee::cpu {

double peak_f32_avx2(int64_t rounds) {
  __m256 sums[12];
  for (auto& sum : sums) sum = _mm256_set1_ps(0.5f);
  const __m256 a = _mm256_set1_ps(0.999f);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) {
      sums[j] = _mm256_fmadd_ps(sums[j], a, a);
      asm volatile("" : "+x"(sums[j]));
    }
  }
  return static_cast<double>(rounds) * 12 * 8 * 2;
}

// maddubs, madd and add: the shortest exact 8-bit dot product that AVX2 has.
double peak_int8_avx2(int64_t rounds) {
  __m256i sums[8];
  for (auto& sum : sums) sum = _mm256_set1_epi32(1);
  __m256i a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(2);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t i = 0; i < rounds; ++i) {
    asm volatile("" : "+x"(a));
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      __m256i products = _mm256_maddubs_epi16(a, b);
      asm volatile("" : "+x"(products));
      sums[j] = _mm256_add_epi32(sums[j], _mm256_madd_epi16(products, ones));
      asm volatile("" : "+x"(sums[j]));
    }
  }
  return static_cast<double>(rounds) * 8 * 32 * 2;
}

}  // namespace rbee::cpu
