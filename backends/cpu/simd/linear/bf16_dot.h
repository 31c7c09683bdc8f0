#pragma once
// Products of bf16 with AVX-512 BF16: vdpbf16ps multiplies pairs of inputs and adds both products
// to a float. Include after vec_avx512.h.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/linear/prefetch.h"

namespace {

[[gnu::always_inline]] inline __m512bh as_bf16(__m512i x) {
  return __builtin_bit_cast(__m512bh, x);
}

// Inputs k and k + 1 of one row.
[[gnu::always_inline]] inline __m512bh broadcast_pair(const uint16_t* x) {
  int32_t two;
  __builtin_memcpy(&two, x, sizeof(two));
  return as_bf16(_mm512_set1_epi32(two));
}

[[gnu::always_inline]] inline __m512bh load_pairs(const std::byte* packed, int64_t pair) {
  return as_bf16(load_step(packed + pair * panel::kStepBytes, 0));
}

inline void round_to_bf16(const float* x, int64_t in, uint16_t* out) {
  int64_t i = 0;
  for (; i + 16 <= in; i += 16) {
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), __builtin_bit_cast(__m256i, rounded));
  }
  if (i == in) return;
  const auto rest = static_cast<__mmask16>((1u << (in - i)) - 1);
  const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(rest, x + i));
  _mm256_mask_storeu_epi16(out + i, rest, __builtin_bit_cast(__m256i, rounded));
}

// One sum is enough, because memory is slower than its additions. With more, loads run so far ahead
// that they request lines in the first-level cache before these are in the second.
inline void run_dot_row(const panel::PanelProduct& p) {
  __m512 sum = _mm512_setzero_ps();
  const int64_t pairs = p.in / 2;
#pragma GCC unroll 4
  for (int64_t k = 0; k < pairs; ++k) {
    fetch_line_ahead(p.packed + k * panel::kStepBytes);
    sum = _mm512_dpbf16_ps(sum, load_pairs(p.packed, k), broadcast_pair(p.x.bf16 + 2 * k));
  }
  store_floats(p.y, 0, sum);
}

constexpr int kDotTile = 12;  // rows of x

// kRows rows of x with kPanels panels side by side.
template <int kRows, int kPanels>
void run_dot_tile(const panel::PanelProduct* const (&panels)[kPanels], int64_t row) {
  const panel::PanelProduct& p = *panels[0];
  __m512 acc[kRows][kPanels];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < kPanels; ++i) {
      const float* y = panels[i]->y + (row + r) * p.y_stride;
      acc[r][i] = p.accumulate ? load_floats(y, 0) : _mm512_setzero_ps();
    }
  }
  const uint16_t* x = p.x.bf16 + row * p.x.stride;
  const std::byte* packed[kPanels];
#pragma GCC unroll 2
  for (int i = 0; i < kPanels; ++i) packed[i] = panels[i]->packed;
  const int64_t pairs = p.in / 2;
#pragma GCC unroll 2
  for (int64_t k = 0; k < pairs; ++k) {
    __m512bh weights[kPanels];
#pragma GCC unroll 2
    for (int i = 0; i < kPanels; ++i) weights[i] = load_pairs(packed[i], k);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512bh input = broadcast_pair(x + r * p.x.stride + 2 * k);
#pragma GCC unroll 2
      for (int i = 0; i < kPanels; ++i) acc[r][i] = _mm512_dpbf16_ps(acc[r][i], weights[i], input);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < kPanels; ++i) {
      store_floats(panels[i]->y + (row + r) * p.y_stride, 0, acc[r][i]);
    }
  }
}

template <int kPanels>
void run_dot_tiles(const panel::PanelProduct* const (&panels)[kPanels]) {
  const int64_t rows = panels[0]->rows;
  int64_t row = 0;
  for (; row + kDotTile <= rows; row += kDotTile) run_dot_tile<kDotTile>(panels, row);
  for (; rows - row >= 4; row += 4) run_dot_tile<4>(panels, row);
  if (rows - row >= 2) {
    run_dot_tile<2>(panels, row);
    row += 2;
  }
  if (row < rows) run_dot_tile<1>(panels, row);
}

inline void run_dot_rows(const panel::PanelProduct& p) {
  run_dot_tiles({&p});
}

inline void run_dot_pair(const panel::PanelProduct& first, const panel::PanelProduct& second) {
  run_dot_tiles({&first, &second});
}

}  // namespace
