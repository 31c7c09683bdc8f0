#pragma once
// 8-bit products with AVX-VNNI: vpdpbusd multiplies unsigned weights by signed inputs and adds four
// neighbours into 32 bits, without saturation. The same names as in dots_avx2.h.

#include "backends/cpu/simd/linear/vec_avx2.h"
// These build on the vectors.
#include "backends/cpu/simd/linear/formats.h"

namespace {

template <typename F>
struct Dots {
  static constexpr int kSteps = F::kSpan / 4;
  static constexpr int kRowSteps = kSteps / 2;  // two sums hide the latency of vpdpbusd

  [[gnu::always_inline]] static __m256i first(__m256i w, __m256i x) {
    return added(_mm256_setzero_si256(), w, x);
  }
  [[gnu::always_inline]] static __m256i added(__m256i sum, __m256i w, __m256i x) {
    return _mm256_dpbusd_avx_epi32(sum, w, x);
  }
  [[gnu::always_inline]] static __m256i widened(__m256i sum) { return sum; }
};

template <typename F>
using Adapted = AsUnsigned<F>;

}  // namespace
