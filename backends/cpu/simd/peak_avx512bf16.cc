#include <immintrin.h>

#include "backends/cpu/peak.h"

namespace rbee::cpu {

double peak_bf16_avx512bf16(int64_t rounds) {
  __m512 sums[12];
  for (auto& sum : sums) sum = _mm512_set1_ps(0.5f);
  const __m512bh a = (__m512bh)_mm512_set1_epi16(0x3f00);  // 0.5
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) {
      sums[j] = _mm512_dpbf16_ps(sums[j], a, a);
      asm volatile("" : "+v"(sums[j]));
    }
  }
  return static_cast<double>(rounds) * 12 * 32 * 2;
}

}  // namespace rbee::cpu
