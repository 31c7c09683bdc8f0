#pragma once
// Products of many quantized rows with an unpacked panel: tiles of up to four rows of x by the
// panel's 16 rows, eight 16-bit sums in registers.

#include "backends/cpu/simd/linear/int8_avx2.h"

namespace {

// The span's dot products of kRows rows, 32 bits, for signed quants.
template <int kSteps, int kRows>
[[gnu::always_inline]] inline void dot_signed(const uint8_t* w, const int8_t* x, int64_t stride,
                                              __m256i (&sum)[kRows][kParts]) {
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
    const __m256i w0 = load_step(w + s * panel::kStepBytes, 0);
    const __m256i w1 = load_step(w + s * panel::kStepBytes, 1);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m256i inputs = broadcast_inputs(x + r * stride + 4 * s);
      const __m256i p0 = signed_products(w0, inputs);
      sum[r][0] = s == 0 ? p0 : added32(sum[r][0], p0);
      const __m256i p1 = signed_products(w1, inputs);
      sum[r][1] = s == 0 ? p1 : added32(sum[r][1], p1);
    }
  }
}

// The same for quants that are not negative: kSteps steps summed in 16 bits, then widened.
template <int kSteps, int kRows>
[[gnu::always_inline]] inline void dot_chain(const uint8_t* w, const int8_t* x, int64_t stride,
                                             __m256i (&sum)[kRows][kParts]) {
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
    const __m256i w0 = load_step(w + s * panel::kStepBytes, 0);
    const __m256i w1 = load_step(w + s * panel::kStepBytes, 1);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m256i inputs = broadcast_inputs(x + r * stride + 4 * s);
      const __m256i p0 = _mm256_maddubs_epi16(w0, inputs);
      sum[r][0] = s == 0 ? p0 : added16(sum[r][0], p0);
      const __m256i p1 = _mm256_maddubs_epi16(w1, inputs);
      sum[r][1] = s == 0 ? p1 : added16(sum[r][1], p1);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = widened(sum[r][0]);
    sum[r][1] = widened(sum[r][1]);
  }
}

template <typename F, int kRows>
[[gnu::always_inline]] inline void dot_tile(const uint8_t* w, const int8_t* x, int64_t stride,
                                            __m256i (&sum)[kRows][kParts]) {
  constexpr int kSpanSteps = F::kSpan / 4;
  if constexpr (F::kSigned) {
    dot_signed<kSpanSteps>(w, x, stride, sum);
  } else {
    constexpr int kChain = chain_of(F::kLargest, kSpanSteps);
    dot_chain<kChain>(w, x, stride, sum);
#pragma GCC unroll 8
    for (int link = kChain; link < kSpanSteps; link += kChain) {
      __m256i more[kRows][kParts];
      dot_chain<kChain>(w + link * panel::kStepBytes, x + 4 * link, stride, more);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        sum[r][0] = added32(sum[r][0], more[r][0]);
        sum[r][1] = added32(sum[r][1], more[r][1]);
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
    const __m256 x_scale = _mm256_broadcast_ss(x_scales + r * scales);
    const __m256 x_sum = _mm256_broadcast_ss(x_sums + r * sums_stride);
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      Scale scale;
      scale.scale = load_floats(p.panel.scale + span * panel::kPanelRows, part);
      if constexpr (!F::kSigned) {
        scale.offset = load_floats(p.panel.offset + span * panel::kPanelRows, part);
      }
      acc[r][part] = add_span<!F::kSigned>(acc[r][part], sum[r][part], scale, x_scale, x_sum);
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
  return {.input = panel::InputForm::quantized,
          .row = &run_row<F>,
          .unpack = &unpack<F>,
          .rows = &run_rows<F>};
}

}  // namespace
