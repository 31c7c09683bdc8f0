#pragma once
// 8-bit products with NEON's dot products: sdot multiplies signed bytes and adds four neighbours
// into 32 bits. The same names as in dots_neon.h.

#include "backends/cpu/simd/linear/vec_neon.h"
// These build on the vectors.
#include "backends/cpu/simd/linear/formats.h"

namespace {

template <typename F>
struct Dots {
  static constexpr int kSteps = F::kSpan / 4;

  using Sum = int32x4_t;

  [[gnu::always_inline]] static Sum first(int8x16_t w, int8x16_t x, int step) {
    return added(vdupq_n_s32(0), w, x, step);
  }
  // The instruction takes one of the four steps by its number.
  [[gnu::always_inline]] static Sum added(Sum sum, int8x16_t w, int8x16_t x, int step) {
    switch (step) {
      case 0:
        return vdotq_laneq_s32(sum, w, x, 0);
      case 1:
        return vdotq_laneq_s32(sum, w, x, 1);
      case 2:
        return vdotq_laneq_s32(sum, w, x, 2);
      default:
        return vdotq_laneq_s32(sum, w, x, 3);
    }
  }
  [[gnu::always_inline]] static int32x4_t widened(Sum sum) { return sum; }
};

}  // namespace
