#pragma once
// Many rows of x with e4m3 codes with AVX-512 BF16: bf16 holds every code, so that only x is
// rounded; each group's sum is multiplied by its scale. Include after vec_avx512.h.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/linear/bf16_dot.h"
#include "backends/cpu/simd/linear/e4m3_kernels.h"

namespace {

// Pairs of inputs as bf16, without the scales.
void unpack_e4m3_pairs(const std::byte* packed, int64_t in, const panel::UnpackedPanel& out) {
  const auto* records = reinterpret_cast<const panel::PanelF8_G128*>(packed);
  const __m512i upper = _mm512_set1_epi32(-65536);
  for (int64_t k = 0; k < in; k += 4) {
    const Four w = four_of_e4m3(records[k / 128].steps[k % 128 / 4]);
#pragma GCC unroll 2
    for (int pair = 0; pair < 2; ++pair) {
      // Nothing is lost with the lower halves: a code has four significant bits.
      const __m512i even = _mm512_srli_epi32(_mm512_castps_si512(w.values[2 * pair][0]), 16);
      const __m512i odd = _mm512_castps_si512(w.values[2 * pair + 1][0]);
      store_step(out.bf16 + (k + 2 * pair) * panel::kPanelRows, 0, either(even, both(odd, upper)));
    }
  }
}

template <int kRows>
void run_e4m3_dot_tile(const panel::PanelProduct& p, int64_t row) {
  const auto* records = reinterpret_cast<const panel::PanelF8_G128*>(p.packed);
  __m512 acc[kRows];
  float* y = p.y + row * p.y_stride;
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    acc[r] = p.accumulate ? load_floats(y + r * p.y_stride, 0) : _mm512_setzero_ps();
  }
  for (int64_t group = 0; group < p.in / 128; ++group) {
    const uint16_t* x = p.x.bf16 + row * p.x.stride + group * 128;
    const uint16_t* w = p.panel.bf16 + group * 128 * panel::kPanelRows;
    __m512 sum[kRows];
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) sum[r] = _mm512_setzero_ps();
#pragma GCC unroll 2
    for (int k = 0; k < 128; k += 2) {
      const __m512bh weights = as_bf16(load_step(w + k * panel::kPanelRows, 0));
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        sum[r] = _mm512_dpbf16_ps(sum[r], weights, broadcast_pair(x + r * p.x.stride + k));
      }
    }
    const __m512 scale = e4m3_scale(records[group], 0);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) acc[r] = _mm512_fmadd_ps(sum[r], scale, acc[r]);
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) store_floats(y + r * p.y_stride, 0, acc[r]);
}

void run_e4m3_dot_rows(const panel::PanelProduct& p) {
  int64_t row = 0;
  for (; row + kDotTile <= p.rows; row += kDotTile) run_e4m3_dot_tile<kDotTile>(p, row);
  for (; p.rows - row >= 4; row += 4) run_e4m3_dot_tile<4>(p, row);
  if (p.rows - row >= 2) {
    run_e4m3_dot_tile<2>(p, row);
    row += 2;
  }
  if (row < p.rows) run_e4m3_dot_tile<1>(p, row);
}

}  // namespace
