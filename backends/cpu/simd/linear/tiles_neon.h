#pragma once
// Products of many quantized rows with an unpacked panel: tiles of up to four rows of x by the
// panel's 16 rows, sixteen sums in registers. Include after dots_<isa>.h.

#include "backends/cpu/simd/linear/int8_neon.h"

namespace {

// Dot products of kRows rows, 32 bits, over kSteps steps from `first` on, widened once.
template <typename F, int kSteps, int kRows>
[[gnu::always_inline]] inline void dot_chain(const uint8_t* w, int first, const int8_t* x,
                                             int64_t stride, int32x4_t (&wide)[kRows][kParts]) {
  typename Dots<F>::Sum sum[kRows][kParts];
#pragma GCC unroll 8
  for (int s = first; s < first + kSteps; ++s) {
    int8x16_t weights[kParts];
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      weights[part] = vreinterpretq_s8_u8(load_step(w + s * panel::kStepBytes, part));
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const int8x16_t inputs = vld1q_s8(x + r * stride + 16 * (s / 4));
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        sum[r][part] = s == first ? Dots<F>::first(weights[part], inputs, s % 4)
                                  : Dots<F>::added(sum[r][part], weights[part], inputs, s % 4);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) wide[r][part] = Dots<F>::widened(sum[r][part]);
  }
}

// The same over a span.
template <typename F, int kRows>
[[gnu::always_inline]] inline void dot_tile(const uint8_t* w, const int8_t* x, int64_t stride,
                                            int32x4_t (&sum)[kRows][kParts]) {
  constexpr int kChain = Dots<F>::kSteps;
  dot_chain<F, kChain>(w, 0, x, stride, sum);
#pragma GCC unroll 8
  for (int link = kChain; link < F::kSpan / 4; link += kChain) {
    int32x4_t more[kRows][kParts];
    dot_chain<F, kChain>(w, link, x, stride, more);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        sum[r][part] = added32(sum[r][part], more[r][part]);
      }
    }
  }
}

template <typename F, int kRows>
void run_tile(const panel::PanelProduct& p, int64_t row) {
  Floats acc[kRows][kParts];
  load_sums<kRows>(p, row, acc);
  const int64_t spans = p.in / F::kSpan;
  for (int64_t span = 0; span < spans; ++span) {
    const SpanInputs<F> x(p, row, span);
    int32x4_t sum[kRows][kParts];
    dot_tile<F, kRows>(p.panel.q + span * F::kSpan * panel::kPanelRows, x.q, x.stride, sum);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const InputScale scale = x.scale(r);
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        acc[r][part] =
            add_span<F>(acc[r][part], sum[r][part], unpacked_scale<F>(p.panel, span, part), scale);
      }
    }
  }
  store_sums<kRows>(p, row, acc);
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
  return {.input = panel::InputForm::quantized,
          .row = &run_row<F>,
          .unpack = &unpack<F>,
          .rows = &run_rows<F>};
}

}  // namespace
