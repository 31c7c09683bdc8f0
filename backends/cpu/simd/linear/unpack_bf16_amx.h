#pragma once
// Panels of block formats as bf16, in the pairs that tiles want: scale * quant + offset, rounded
// once in f32 and once to bf16. Include after vec_avx512.h and formats.h.

#include "backends/cpu/linear/kernels.h"

namespace {

// One number for each row, twice: rows 0 to 7 and rows 8 to 15.
struct Doubled {
  Floats low, high;
};
[[gnu::always_inline]] inline Doubled doubled(Floats x) {
  const __m512i low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  return {_mm512_permutexvar_ps(low, x), _mm512_permutexvar_ps(high, x)};
}

struct DoubledScale {
  Doubled scale, offset;
};

// Inputs 2 j and 2 j + 1 of a step as 32-bit numbers: those of row `first`, of the row after it...
[[gnu::always_inline]] inline Floats pairs_of(Bytes step, int first, int j) {
  const __m512i places =
      _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29);
  const __m512i from = _mm512_add_epi32(places, _mm512_set1_epi32(4 * first + 2 * j));
  return _mm512_cvtepi32_ps(_mm512_maskz_permutexvar_epi8(0x1111111111111111u, from, step));
}

[[gnu::always_inline]] inline void unpack_step(Bytes step, const DoubledScale& by, uint16_t* out) {
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    const Floats low = fused(pairs_of(step, 0, j), by.scale.low, by.offset.low);
    const Floats high = fused(pairs_of(step, 8, j), by.scale.high, by.offset.high);
    const __m512bh both_halves = _mm512_cvtne2ps_pbh(high, low);
    _mm512_storeu_si512(out + j * 2 * panel::kPanelRows, __builtin_bit_cast(__m512i, both_halves));
  }
}

template <typename F>
void unpack_bf16(const std::byte* packed, int64_t in, const panel::UnpackedPanel& out) {
  constexpr int kSpanSteps = F::kSpan / 4;
  const auto* records = reinterpret_cast<const typename F::Record*>(packed);
  uint16_t* to = out.bf16;
  for (int64_t i = 0; i < in / (32 * F::kGroups); ++i) {
    const Head head = F::head(records[i], 0);
    for (int g = 0; g < F::kGroups; ++g) {
#pragma GCC unroll 2
      for (int half = 0; half < 32 / F::kSpan; ++half) {
        const Scale scale = F::scale(records[i], head, g, half, 0);
        const DoubledScale by{doubled(scale.scale), doubled(scale.offset)};
        const int first = half * kSpanSteps;
        Bytes steps[kSpanSteps];
#pragma GCC unroll 8
        for (int s = 0; s < kSpanSteps; ++s) steps[s] = F::step(records[i], g, first + s, 0);
#pragma GCC unroll 8
        for (int s = 0; s < kSpanSteps; ++s) {
          unpack_step(steps[s], by, to + (first + s) * 4 * panel::kPanelRows);
        }
      }
      to += 32 * panel::kPanelRows;
    }
  }
}

}  // namespace
