#include <immintrin.h>

#include "backends/cpu/peak.h"
#include "backends/cpu/simd/peak_loop.h"

namespace rbee::cpu {

double peak_bf16_avx512bf16(int64_t rounds) {
  const __m512i a = _mm512_set1_epi16(0x3f00);  // 0.5
#define RB_START(i) __m512 sum##i = _mm512_setzero_ps();
#define RB_STEP(i) asm volatile("vdpbf16ps %1, %1, %0" : "+v"(sum##i) : "v"(a));
  RB_EACH_12(RB_START)
  for (int64_t i = 0; i < rounds; ++i) {
    RB_EACH_12(RB_STEP)
  }
#undef RB_START
#undef RB_STEP
  return static_cast<double>(rounds) * 12 * 32 * 2;
}

}  // namespace rbee::cpu
