#pragma once
// The conversion of x to 8 bits with AVX-512.

#include <immintrin.h>

#include "backends/cpu/linear/kernels.h"

namespace {

namespace panel = rbee::cpu;

// Below this 127 / x would overflow; such inputs count as zero.
constexpr float kTiny = 0x1p-120f;

// Symmetric: scale = max |x| / 127, q = round(x / scale), halves to even. The maximum is taken of
// the bit patterns, where NaN is above infinity, so that neither is lost.
void quantize(const float* x, int64_t in, const panel::QuantizedRow& out) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  for (int64_t group = 0; group < in / 32; ++group) {
    const __m512 v0 = _mm512_loadu_ps(x + group * 32), v1 = _mm512_loadu_ps(x + group * 32 + 16);
    const __m512i m0 = _mm512_and_si512(_mm512_castps_si512(v0), magnitude);
    const __m512i m1 = _mm512_and_si512(_mm512_castps_si512(v1), magnitude);
    const float most = __builtin_bit_cast(float, _mm512_reduce_max_epi32(_mm512_max_epi32(m0, m1)));
    const float scale = most / 127.0f;
    const __m512 inverse = _mm512_set1_ps(most >= kTiny ? 127.0f / most : 0.0f);
    const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(v0, inverse));
    const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(v1, inverse));
    auto* q = reinterpret_cast<__m128i*>(out.q + group * 32);
    _mm_storeu_si128(q, _mm512_cvtsepi32_epi8(q0));
    _mm_storeu_si128(q + 1, _mm512_cvtsepi32_epi8(q1));
    const int first = _mm512_reduce_add_epi32(q0), second = _mm512_reduce_add_epi32(q1);
    out.scale[group] = scale;
    out.sum32[group] = scale * static_cast<float>(first + second);
    out.sum16[2 * group] = scale * static_cast<float>(first);
    out.sum16[2 * group + 1] = scale * static_cast<float>(second);
  }
}

}  // namespace
