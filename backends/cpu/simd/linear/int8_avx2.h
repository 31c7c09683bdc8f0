#pragma once
// 8-bit products with AVX2. maddubs multiplies unsigned by signed bytes and adds neighbours into
// 16 bits, saturating, so:
// - quants up to kLargest are used as they are, and sums stay in 16 bits over as many steps as they
//   cannot overflow (2 * 127 * kLargest each) before one madd widens them;
// - signed quants go as |w| * (x with w's sign), widened at each step: 2 * 128 * 127 just fits.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/linear/prefetch.h"
#include "backends/cpu/simd/linear/vec_avx2.h"
// These build on the vectors.
#include "backends/cpu/simd/linear/formats.h"
#include "backends/cpu/simd/linear/unpack.h"

namespace {

// Steps that may be summed in 16 bits, for spans of `steps` steps.
constexpr int chain_of(int largest, int steps) {
  int chain = 1;
  while (chain < steps && 2 * 127 * largest * chain * 2 <= 32767) chain *= 2;
  return chain;
}

[[gnu::always_inline]] inline __m256i broadcast_inputs(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  return _mm256_set1_epi32(four);
}

// sum + x. GCC would rather add the products of a chain as a tree, and keep them all in memory
// until then; the empty statement hides that sums may be reordered.
[[gnu::always_inline]] inline __m256i added16(__m256i sum, __m256i x) {
  sum = _mm256_add_epi16(sum, x);
  asm("" : "+x"(sum));
  return sum;
}
[[gnu::always_inline]] inline __m256i added32(__m256i sum, __m256i x) {
  sum = _mm256_add_epi32(sum, x);
  asm("" : "+x"(sum));
  return sum;
}

[[gnu::always_inline]] inline __m256i widened(__m256i x) {
  return _mm256_madd_epi16(x, _mm256_set1_epi16(1));
}

// Products of one step for signed quants, 32 bits for each row.
[[gnu::always_inline]] inline __m256i signed_products(__m256i w, __m256i x) {
  return widened(_mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
}

// Dot products of span `half` of group g with x, the group's first input.
template <typename F>
[[gnu::always_inline]] inline __m256i dot_span(const typename F::Record& record, int g, int half,
                                               int part, const int8_t* x) {
  constexpr int kSpanSteps = F::kSpan / 4;
  constexpr int kChain = F::kSigned ? 1 : chain_of(F::kLargest, kSpanSteps);
  __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int link = 0; link < kSpanSteps; link += kChain) {
    __m256i chain = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int i = 0; i < kChain; ++i) {
      const int s = half * kSpanSteps + link + i;
      const __m256i w = F::step(record, g, s, part);
      const __m256i inputs = broadcast_inputs(x + 4 * s);
      if constexpr (F::kSigned) {
        sum = added32(sum, signed_products(w, inputs));
      } else {
        chain = added16(chain, _mm256_maddubs_epi16(w, inputs));
      }
    }
    if constexpr (!F::kSigned) sum = added32(sum, widened(chain));
  }
  return sum;
}

// acc += (scale * dot + offset * sum of quants) * x's scale
template <bool kHasOffset>
[[gnu::always_inline]] inline __m256 add_span(__m256 acc, __m256i dot, const Scale& scale,
                                              __m256 x_scale, __m256 x_sum) {
  const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(dot), x_scale);
  acc = _mm256_fmadd_ps(product, scale.scale, acc);
  return kHasOffset ? _mm256_fmadd_ps(x_sum, scale.offset, acc) : acc;
}

template <typename F>
[[gnu::always_inline]] inline void add_group(const typename F::Record& record, int g,
                                             const Heads& heads, const InputGroup& x,
                                             __m256 (&acc)[kParts]) {
  constexpr int kHalves = 32 / F::kSpan;
  const __m256 x_scale = _mm256_broadcast_ss(x.scale);
#pragma GCC unroll 2
  for (int half = 0; half < kHalves; ++half) {
    const __m256 x_sum = _mm256_broadcast_ss(x.sums + half);
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      const __m256i dot = dot_span<F>(record, g, half, part, x.q);
      acc[part] = add_span<!F::kSigned>(
          acc[part], dot, F::scale(record, heads.parts[part], g, half, part), x_scale, x_sum);
    }
  }
}

template <typename F>
void run_row(const panel::PanelProduct& p) {
  const auto* records = reinterpret_cast<const typename F::Record*>(p.packed);
  const int64_t count = p.in / (32 * F::kGroups);
  __m256 acc[kParts];
#pragma GCC unroll 2
  for (int part = 0; part < kParts; ++part) acc[part] = _mm256_setzero_ps();
  for (int64_t i = 0; i < count; ++i) {
    const typename F::Record& record = records[i];
    const Heads heads = heads_of<F>(record);
    for (int g = 0; g < F::kGroups; ++g) {
      fetch_group_ahead<F>(record, g);
      add_group<F>(record, g, heads, input_group<F::kSpan>(p.x, i * F::kGroups + g), acc);
    }
  }
#pragma GCC unroll 2
  for (int part = 0; part < kParts; ++part) store_floats(p.y, part, acc[part]);
}

}  // namespace
