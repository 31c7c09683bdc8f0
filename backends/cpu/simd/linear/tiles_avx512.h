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
template <typename F>
[[gnu::always_inline]] inline __m512 add_span(__m512 acc, __m512i dot, const Scale& scale,
                                              const float* x_scale, const float* x_sum) {
  const __m512 inputs = _mm512_set1_ps(*x_scale), sum = _mm512_set1_ps(*x_sum);
  if constexpr (kHasOffset<F>) {
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), inputs);
    return fused(sum, scale.offset, fused(product, scale.scale, acc));
  }
  const __m512 shift = times(sum, all(-F::kShift));
  return fused(fused(_mm512_cvtepi32_ps(dot), inputs, shift), scale.scale, acc);
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
        acc = add_span<F>(acc, dot, scale, x.scale, x.sums + half);
      }
    }
  }
  store_floats(p.y, 0, acc);
}

// Four inputs in a register, where two products read them.
template <int kPanels>
[[gnu::always_inline]] inline __m512i shared_inputs(const int8_t* x) {
  __m512i inputs = broadcast_inputs(x);
  // GCC would read them from memory for each product.
  if constexpr (kPanels > 1) asm("" : "+v"(inputs));
  return inputs;
}

// Panels that meet the same rows of x.
template <int kPanels>
using Panels = const panel::PanelProduct* [kPanels];

// One span of kRows rows.
template <typename F, int kRows, int kPanels>
[[gnu::always_inline]] inline void add_tile(const Panels<kPanels>& panels, int64_t row,
                                            int64_t span, __m512 (&acc)[kRows][kPanels]) {
  constexpr int kSpans = 32 / F::kSpan;  // in one group
  const panel::InputRows& x = panels[0]->x;
  const int64_t scales = x.stride / 32, sums_stride = x.stride / F::kSpan;
  const int8_t* q = x.q + row * x.stride + span * F::kSpan;
  const float* x_scales = x.scale + row * scales + span / kSpans;
  const float* x_sums = (F::kSpan == 32 ? x.sum32 : x.sum16) + row * sums_stride + span;
  __m512i sum[kRows][kPanels];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < kPanels; ++i) sum[r][i] = _mm512_setzero_si512();
  }
#pragma GCC unroll 8
  for (int s = 0; s < F::kSpan / 4; ++s) {
    __m512i weights[kPanels];
#pragma GCC unroll 2
    for (int i = 0; i < kPanels; ++i) {
      const uint8_t* w = panels[i]->panel.q + span * F::kSpan * panel::kPanelRows;
      weights[i] = load_step(w + s * panel::kStepBytes, 0);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512i inputs = shared_inputs<kPanels>(q + r * x.stride + 4 * s);
#pragma GCC unroll 2
      for (int i = 0; i < kPanels; ++i) {
        sum[r][i] = _mm512_dpbusd_epi32(sum[r][i], weights[i], inputs);
      }
    }
  }
#pragma GCC unroll 2
  for (int i = 0; i < kPanels; ++i) {
    const panel::UnpackedPanel& unpacked = panels[i]->panel;
    Scale scale;
    scale.scale = load_floats(unpacked.scale + span * panel::kPanelRows, 0);
    if constexpr (kHasOffset<F>) {
      scale.offset = load_floats(unpacked.offset + span * panel::kPanelRows, 0);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      acc[r][i] =
          add_span<F>(acc[r][i], sum[r][i], scale, x_scales + r * scales, x_sums + r * sums_stride);
    }
  }
}

template <typename F, int kRows, int kPanels>
void run_tile(const Panels<kPanels>& panels, int64_t row) {
  __m512 acc[kRows][kPanels];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < kPanels; ++i) {
      const panel::PanelProduct& p = *panels[i];
      acc[r][i] = p.accumulate ? load_floats(p.y + (row + r) * p.y_stride, 0) : _mm512_setzero_ps();
    }
  }
  const int64_t spans = panels[0]->in / F::kSpan;
  for (int64_t span = 0; span < spans; ++span) {
    add_tile<F, kRows, kPanels>(panels, row, span, acc);
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < kPanels; ++i) {
      const panel::PanelProduct& p = *panels[i];
      store_floats(p.y + (row + r) * p.y_stride, 0, acc[r][i]);
    }
  }
}

// Rows of x at a time: twelve sums in 32 bits, twelve in float.
template <int kPanels>
constexpr int kTile = 12 / kPanels;

template <typename F, int kPanels>
[[gnu::always_inline]] inline void run_all_rows(const Panels<kPanels>& panels) {
  const int64_t rows = panels[0]->rows;
  int64_t row = 0;
  for (; row + kTile<kPanels> <= rows; row += kTile<kPanels>) {
    run_tile<F, kTile<kPanels>, kPanels>(panels, row);
  }
  for (; rows - row >= 4; row += 4) run_tile<F, 4, kPanels>(panels, row);
  if (rows - row >= 2) {
    run_tile<F, 2, kPanels>(panels, row);
    row += 2;
  }
  if (row < rows) run_tile<F, 1, kPanels>(panels, row);
}

template <typename F>
void run_rows(const panel::PanelProduct& p) {
  run_all_rows<F, 1>({&p});
}

template <typename F>
void run_pair(const panel::PanelProduct& first, const panel::PanelProduct& second) {
  run_all_rows<F, 2>({&first, &second});
}

template <typename F>
constexpr panel::PanelKernels block_kernels() {
  using Format = typename AsUnsigned<F>::Type;
  return {.input = panel::InputForm::quantized,
          .row = &run_row<Format>,
          .unpack = &unpack<Format>,
          .rows = &run_rows<Format>,
          // Bytes are limited by reading x; others by what scales their sums.
          .pair = F::kSigned ? &run_pair<Format> : nullptr};
}

}  // namespace
