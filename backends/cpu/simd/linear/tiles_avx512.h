#pragma once
// 8-bit products with AVX-512 VNNI: vpdpbusd multiplies unsigned weights by signed inputs and adds
// four neighbours into 32 bits, without saturation.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/linear/prefetch.h"
#include "backends/cpu/simd/linear/vec_avx512.h"
// These build on the vectors.
#include "backends/cpu/simd/linear/formats.h"
#include "backends/cpu/simd/linear/unpack.h"

namespace {

[[gnu::always_inline]] inline __m512i broadcast_inputs(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  return _mm512_set1_epi32(four);
}

// acc += (scale * dot + offset * sum of quants) * x's scale
[[gnu::always_inline]] inline __m512 add_span(__m512 acc, __m512i dot, const Scale& scale,
                                              const float* x_scale, const float* x_sum) {
  const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), _mm512_set1_ps(*x_scale));
  acc = _mm512_fmadd_ps(product, scale.scale, acc);
  return _mm512_fmadd_ps(_mm512_set1_ps(*x_sum), scale.offset, acc);
}

// Two sums, of even and of odd steps, hide the latency of vpdpbusd.
template <typename F>
[[gnu::always_inline]] inline __m512i dot_span(const typename F::Record& record, int g, int half,
                                               const int8_t* x) {
  constexpr int kSpanSteps = F::kSpan / 4;
  __m512i even = _mm512_setzero_si512(), odd = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (int i = 0; i < kSpanSteps; i += 2) {
    const int s = half * kSpanSteps + i;
    even = _mm512_dpbusd_epi32(even, F::step(record, g, s, 0), broadcast_inputs(x + 4 * s));
    odd = _mm512_dpbusd_epi32(odd, F::step(record, g, s + 1, 0), broadcast_inputs(x + 4 * s + 4));
  }
  return _mm512_add_epi32(even, odd);
}

template <typename F>
void run_row(const panel::PanelProduct& p) {
  const auto* records = reinterpret_cast<const typename F::Record*>(p.packed);
  const int64_t count = p.in / (32 * F::kGroups);
  __m512 acc = _mm512_setzero_ps();
  for (int64_t i = 0; i < count; ++i) {
    const typename F::Record& record = records[i];
    const Heads heads = heads_of<F>(record);
    for (int g = 0; g < F::kGroups; ++g) {
      fetch_group_ahead<F>(record, g);
      const InputGroup x = input_group<F::kSpan>(p.x, i * F::kGroups + g);
#pragma GCC unroll 2
      for (int half = 0; half < 32 / F::kSpan; ++half) {
        const __m512i dot = dot_span<F>(record, g, half, x.q);
        const Scale scale = F::scale(record, heads.parts[0], g, half, 0);
        acc = add_span(acc, dot, scale, x.scale, x.sums + half);
      }
    }
  }
  store_floats(p.y, 0, acc);
}

// One span of kRows rows.
template <typename F, int kRows>
[[gnu::always_inline]] inline void add_tile(const panel::PanelProduct& p, int64_t row, int64_t span,
                                            __m512 (&acc)[kRows]) {
  constexpr int kSpans = 32 / F::kSpan;  // in one group
  const int64_t scales = p.x.stride / 32, sums_stride = p.x.stride / F::kSpan;
  const int8_t* q = p.x.q + row * p.x.stride + span * F::kSpan;
  const float* x_scales = p.x.scale + row * scales + span / kSpans;
  const float* x_sums = (F::kSpan == 32 ? p.x.sum32 : p.x.sum16) + row * sums_stride + span;
  const uint8_t* w = p.panel.q + span * F::kSpan * panel::kPanelRows;
  __m512i sum[kRows];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) sum[r] = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int s = 0; s < F::kSpan / 4; ++s) {
    const __m512i weights = load_step(w + s * panel::kStepBytes, 0);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      sum[r] = _mm512_dpbusd_epi32(sum[r], weights, broadcast_inputs(q + r * p.x.stride + 4 * s));
    }
  }
  const Scale scale = {load_floats(p.panel.scale + span * panel::kPanelRows, 0),
                       load_floats(p.panel.offset + span * panel::kPanelRows, 0)};
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    acc[r] = add_span(acc[r], sum[r], scale, x_scales + r * scales, x_sums + r * sums_stride);
  }
}

template <typename F, int kRows>
void run_tile(const panel::PanelProduct& p, int64_t row) {
  __m512 acc[kRows];
  float* y = p.y + row * p.y_stride;
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    acc[r] = p.accumulate ? load_floats(y + r * p.y_stride, 0) : _mm512_setzero_ps();
  }
  const int64_t spans = p.in / F::kSpan;
  for (int64_t span = 0; span < spans; ++span) add_tile<F, kRows>(p, row, span, acc);
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) store_floats(y + r * p.y_stride, 0, acc[r]);
}

constexpr int kTile = 12;  // rows of x: twelve sums in 32 bits, twelve in float

template <typename F>
void run_rows(const panel::PanelProduct& p) {
  int64_t row = 0;
  for (; row + kTile <= p.rows; row += kTile) run_tile<F, kTile>(p, row);
  for (; p.rows - row >= 4; row += 4) run_tile<F, 4>(p, row);
  if (p.rows - row >= 2) {
    run_tile<F, 2>(p, row);
    row += 2;
  }
  if (row < p.rows) run_tile<F, 1>(p, row);
}

template <typename F, bool kSigned = F::kSigned>
struct Adapted {
  using Type = F;
};
template <typename F>
struct Adapted<F, true> {
  using Type = Unsigned<F>;
};

template <typename F>
constexpr panel::PanelKernels block_kernels() {
  using Format = typename Adapted<F>::Type;
  return {.input = panel::InputForm::quantized,
          .row = &run_row<Format>,
          .unpack = &unpack<Format>,
          .rows = &run_rows<Format>};
}

}  // namespace
