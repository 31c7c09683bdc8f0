#pragma once
// Products of many quantized rows with an unpacked panel: tiles of up to four rows of x by the
// panel's 16 rows, eight sums in registers. Include after dots_<isa>.h.

#include "backends/cpu/simd/linear/int8_avx2.h"

namespace {

// Dot products of kRows rows, 32 bits, over kSteps steps that are widened once.
template <typename F, int kSteps, int kRows>
[[gnu::always_inline]] inline void dot_chain(const uint8_t* w, const int8_t* x, int64_t stride,
                                             __m256i (&sum)[kRows][kParts]) {
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
    __m256i weights[kParts];
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      weights[part] = load_step(w + s * panel::kStepBytes, part);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m256i inputs = broadcast_inputs(x + r * stride + 4 * s);
#pragma GCC unroll 2
      for (int part = 0; part < kParts; ++part) {
        sum[r][part] = s == 0 ? Dots<F>::first(weights[part], inputs)
                              : Dots<F>::added(sum[r][part], weights[part], inputs);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) sum[r][part] = Dots<F>::widened(sum[r][part]);
  }
}

// The same over a span.
template <typename F, int kRows>
[[gnu::always_inline]] inline void dot_tile(const uint8_t* w, const int8_t* x, int64_t stride,
                                            __m256i (&sum)[kRows][kParts]) {
  constexpr int kChain = Dots<F>::kSteps;
  dot_chain<F, kChain>(w, x, stride, sum);
#pragma GCC unroll 8
  for (int link = kChain; link < F::kSpan / 4; link += kChain) {
    __m256i more[kRows][kParts];
    dot_chain<F, kChain>(w + link * panel::kStepBytes, x + 4 * link, stride, more);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int part = 0; part < kParts; ++part) {
        sum[r][part] = added32(sum[r][part], more[r][part]);
      }
    }
  }
}

template <typename F, int kRows>
[[gnu::always_inline]] inline void add_tile(const panel::PanelProduct& p, int64_t row, int64_t span,
                                            __m256 (&acc)[kRows][kParts]) {
  constexpr int kSpans = 32 / F::kSpan;  // in one group
  const int64_t scales = p.x.stride / 32, sums_stride = p.x.stride / F::kSpan;
  const int8_t* q = p.x.q + row * p.x.stride + span * F::kSpan;
  const float* x_scales = p.x.scale + row * scales + span / kSpans;
  const float* x_sums = (F::kSpan == 32 ? p.x.sum32 : p.x.sum16) + row * sums_stride + span;
  __m256i sum[kRows][kParts];
  dot_tile<F, kRows>(p.panel.q + span * F::kSpan * panel::kPanelRows, q, p.x.stride, sum);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const InputScale x = input_scale<F>(x_scales + r * scales, x_sums + r * sums_stride);
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      Scale scale;
      scale.scale = load_floats(p.panel.scale + span * panel::kPanelRows, part);
      if constexpr (kHasOffset<F>) {
        scale.offset = load_floats(p.panel.offset + span * panel::kPanelRows, part);
      }
      acc[r][part] = add_span<F>(acc[r][part], sum[r][part], scale, x);
    }
  }
}

template <typename F, int kRows>
void run_tile(const panel::PanelProduct& p, int64_t row) {
  __m256 acc[kRows][kParts];
  float* y = p.y + row * p.y_stride;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      acc[r][part] = p.accumulate ? load_floats(y + r * p.y_stride, part) : _mm256_setzero_ps();
    }
  }
  const int64_t spans = p.in / F::kSpan;
  for (int64_t span = 0; span < spans; ++span) add_tile<F, kRows>(p, row, span, acc);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) store_floats(y + r * p.y_stride, part, acc[r][part]);
  }
}

template <typename F>
void run_rows(const panel::PanelProduct& p) {
  int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) run_tile<F, 4>(p, row);
  if (p.rows - row >= 2) {
    run_tile<F, 2>(p, row);
    row += 2;
  }
  if (row < p.rows) run_tile<F, 1>(p, row);
}

template <typename F>
constexpr panel::PanelKernels block_kernels() {
  using Format = typename Adapted<F>::Type;
  return {.input = panel::InputForm::quantized,
          .row = &run_row<Format>,
          .unpack = &unpack<Format>,
          .rows = &run_rows<Format>};
}

}  // namespace
