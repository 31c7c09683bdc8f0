#include <immintrin.h>

#include "backends/cpu/peak.h"

namespace rbee::cpu {

double peak_f32_avx512(int64_t rounds) {
  __m512 sums[12];
  for (auto& sum : sums) sum = _mm512_set1_ps(0.5f);
  const __m512 a = _mm512_set1_ps(0.999f);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) {
      sums[j] = _mm512_fmadd_ps(sums[j], a, a);
      asm volatile("" : "+v"(sums[j]));
    }
  }
  return static_cast<double>(rounds) * 12 * 16 * 2;
}

double peak_int8_avx512(int64_t rounds) {
  __m512i sums[12];
  for (auto& sum : sums) sum = _mm512_set1_epi32(1);
  const __m512i a = _mm512_set1_epi8(3);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) {
      sums[j] = _mm512_dpbusd_epi32(sums[j], a, a);
      asm volatile("" : "+v"(sums[j]));
    }
  }
  return static_cast<double>(rounds) * 12 * 64 * 2;
}

}  // namespace rbee::cpu
