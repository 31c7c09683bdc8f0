#pragma once
// The conversion of x to 8 bits with AVX2.

#include <immintrin.h>

#include "backends/cpu/linear/kernels.h"

namespace {

namespace panel = rbee::cpu;

// The largest value of all eight lanes, as signed integers.
[[gnu::always_inline]] inline __m256i largest(__m256i x) {
  x = _mm256_max_epi32(x, _mm256_permute2x128_si256(x, x, 1));
  x = _mm256_max_epi32(x, _mm256_shuffle_epi32(x, 0x4e));
  return _mm256_max_epi32(x, _mm256_shuffle_epi32(x, 0xb1));
}

// Sums of 16 bytes each.
struct Sums {
  int32_t first, second;
};
[[gnu::always_inline]] inline Sums sums_of(__m256i q) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
  __m256i x = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  x = _mm256_add_epi32(x, _mm256_shuffle_epi32(x, 0x4e));
  x = _mm256_add_epi32(x, _mm256_shuffle_epi32(x, 0xb1));
  return {_mm_cvtsi128_si32(_mm256_castsi256_si128(x)),
          _mm_cvtsi128_si32(_mm256_extracti128_si256(x, 1))};
}

// Below this 127 / x would overflow; such inputs count as zero.
constexpr float kTiny = 0x1p-120f;

// Symmetric: scale = max |x| / 127, q = round(x / scale), halves to even. The maximum is taken of
// the bit patterns, where NaN is above infinity, so that neither is lost.
void quantize(const float* x, int64_t in, const panel::QuantizedRow& out) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  for (int64_t group = 0; group < in / 32; ++group) {
    __m256 v[4];
    __m256i top = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      v[i] = _mm256_loadu_ps(x + group * 32 + i * 8);
      top = _mm256_max_epi32(top, _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude));
    }
    const float most = _mm256_cvtss_f32(_mm256_castsi256_ps(largest(top)));
    const float scale = most / 127.0f;
    const __m256 inverse = _mm256_set1_ps(most >= kTiny ? 127.0f / most : 0.0f);
    __m256i q[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
    const __m256i low = _mm256_packs_epi32(q[0], q[1]), high = _mm256_packs_epi32(q[2], q[3]);
    // Packing works on 128-bit halves; the permutation brings the bytes back in order.
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high),
                                                      _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.q + group * 32), bytes);
    const Sums sums = sums_of(bytes);
    out.scale[group] = scale;
    out.sum32[group] = scale * static_cast<float>(sums.first + sums.second);
    out.sum16[2 * group] = scale * static_cast<float>(sums.first);
    out.sum16[2 * group + 1] = scale * static_cast<float>(sums.second);
  }
}

}  // namespace
