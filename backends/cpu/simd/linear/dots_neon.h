#pragma once
// 8-bit products with NEON. smull multiplies eight signed bytes into 16 bits, where smlal adds as
// many steps as cannot overflow; then sums of neighbours are widened to 32 bits. Quants that are
// not negative are at most 127, so all formats are signed bytes.

#include "backends/cpu/simd/linear/vec_neon.h"
// These build on the vectors.
#include "backends/cpu/simd/linear/formats.h"

namespace {

// Steps that may be summed in 16 bits, for spans of `steps` steps.
constexpr int chain_of(int largest, int steps) {
  int chain = 1;
  while (chain < steps && 127 * largest * chain * 2 <= 32767) chain *= 2;
  return chain;
}

// Sums of products of F's quants with inputs, four of each to a lane of 32 bits: first() and
// added() for up to kSteps steps, then widened(). x has the inputs of four steps, `step` of which
// is meant.
template <typename F>
struct Dots {
  static constexpr int kSteps = chain_of(F::kSigned ? 128 : F::kLargest, F::kSpan / 4);

  struct Sum {
    int16x8_t low, high;
  };

  [[gnu::always_inline]] static Sum first(int8x16_t w, int8x16_t x, int step) {
    const int8x16_t inputs = inputs_of(x, step);
    return {vmull_s8(vget_low_s8(w), vget_low_s8(inputs)), vmull_high_s8(w, inputs)};
  }
  [[gnu::always_inline]] static Sum added(Sum sum, int8x16_t w, int8x16_t x, int step) {
    const int8x16_t inputs = inputs_of(x, step);
    return {vmlal_s8(sum.low, vget_low_s8(w), vget_low_s8(inputs)),
            vmlal_high_s8(sum.high, w, inputs)};
  }
  [[gnu::always_inline]] static int32x4_t widened(Sum sum) {
    return vpaddq_s32(vpaddlq_s16(sum.low), vpaddlq_s16(sum.high));
  }

 private:
  [[gnu::always_inline]] static int8x16_t inputs_of(int8x16_t x, int step) {
    const int32x4_t steps = vreinterpretq_s32_s8(x);
    return vreinterpretq_s8_s32(vdupq_n_s32(steps[step]));
  }
};

}  // namespace
