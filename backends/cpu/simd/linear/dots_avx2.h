#pragma once
// 8-bit products with AVX2. maddubs multiplies unsigned by signed bytes and adds neighbours into
// 16 bits, saturating, so:
// - quants up to kLargest are used as they are, and sums stay in 16 bits over as many steps as they
//   cannot overflow (2 * 127 * kLargest each) before one madd widens them;
// - signed quants go as |w| * (x with w's sign), widened at each step: 2 * 128 * 127 just fits.

#include "backends/cpu/simd/linear/vec_avx2.h"
// These build on the vectors.
#include "backends/cpu/simd/linear/formats.h"

namespace {

// Steps that may be summed in 16 bits, for spans of `steps` steps.
constexpr int chain_of(int largest, int steps) {
  int chain = 1;
  while (chain < steps && 2 * 127 * largest * chain * 2 <= 32767) chain *= 2;
  return chain;
}

// Sums of products of F's quants with inputs, four of each to a lane of 32 bits: first() and
// added() for up to kSteps steps, then widened().
template <typename F>
struct Dots {
  static constexpr int kSpanSteps = F::kSpan / 4;
  static constexpr int kSteps = F::kSigned ? kSpanSteps : chain_of(F::kLargest, kSpanSteps);
  static constexpr int kRowSteps = kSteps;  // with one row of x

  [[gnu::always_inline]] static __m256i first(__m256i w, __m256i x) {
    if constexpr (!F::kSigned) return _mm256_maddubs_epi16(w, x);
    return pairs_added(_mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
  }
  // GCC would rather add the products of a chain as a tree, and keep them all in memory until then;
  // the empty statement hides that sums may be reordered.
  [[gnu::always_inline]] static __m256i added(__m256i sum, __m256i w, __m256i x) {
    const __m256i product = first(w, x);
    sum = F::kSigned ? _mm256_add_epi32(sum, product) : _mm256_add_epi16(sum, product);
    asm("" : "+x"(sum));
    return sum;
  }
  [[gnu::always_inline]] static __m256i widened(__m256i sum) {
    return F::kSigned ? sum : pairs_added(sum);
  }

 private:
  [[gnu::always_inline]] static __m256i pairs_added(__m256i x) {
    return _mm256_madd_epi16(x, _mm256_set1_epi16(1));
  }
};

// The format that products read.
template <typename F>
struct Adapted {
  using Type = F;
};

}  // namespace
