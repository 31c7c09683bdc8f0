#pragma once
// Products of many quantized rows with an unpacked panel by matrices: smmla multiplies eight inputs
// of two rows of x by eight inputs of two rows of the panel. Include after dots_dotprod.h, whose
// products are those of one row of x.

#include "backends/cpu/simd/linear/int8_neon.h"

namespace {

constexpr int kRowPairs = panel::kPanelRows / 2;   // of a panel
constexpr int kPairBytes = 2 * panel::kStepBytes;  // of eight inputs of the 16 rows

// Eight inputs of two rows side by side, [in / 8][8 pairs of rows][2][8]: two steps, interleaved.
[[gnu::always_inline]] inline void join_steps(uint8_t* steps) {
#pragma GCC unroll 4
  for (int pair = 0; pair < panel::kSteps / 2; ++pair, steps += kPairBytes) {
    uint32x4_t first[kParts], second[kParts];
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      first[part] = lanes_in(load_step(steps, part));
      second[part] = lanes_in(load_step(steps + panel::kStepBytes, part));
    }
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      store_step(steps, 2 * part, bytes_in(vzip1q_u32(first[part], second[part])));
      store_step(steps, 2 * part + 1, bytes_in(vzip2q_u32(first[part], second[part])));
    }
  }
}

template <typename F>
void unpack_pairs(const std::byte* packed, int64_t in, const panel::UnpackedPanel& out) {
  unpack<F>(packed, in, out);
  uint8_t* group = out.q;
  for (int64_t i = 0; i < in / 32; ++i, group += panel::kSteps * panel::kStepBytes) {
    join_steps(group);
  }
}

// kRows rows of x in pairs; where a second row is missing, the first one stands for it.
template <typename F, int kRows>
[[gnu::always_inline]] inline void dot_pairs(const uint8_t* w, const SpanInputs<F>& x,
                                             int32x4_t (&sum)[(kRows + 1) / 2][kRowPairs]) {
  constexpr int kPairs = (kRows + 1) / 2;
#pragma GCC unroll 2
  for (int sixteen = 0; sixteen < F::kSpan / 16; ++sixteen) {
    int8x16_t inputs[kPairs][2];
#pragma GCC unroll 2
    for (int i = 0; i < kPairs; ++i) {
      const int second = 2 * i + 1 < kRows ? 2 * i + 1 : 2 * i;
      const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(x.q + 2 * i * x.stride + 16 * sixteen));
      const int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(x.q + second * x.stride + 16 * sixteen));
      inputs[i][0] = vreinterpretq_s8_s64(vzip1q_s64(a, b));
      inputs[i][1] = vreinterpretq_s8_s64(vzip2q_s64(a, b));
    }
#pragma GCC unroll 2
    for (int eight = 0; eight < 2; ++eight) {
      const uint8_t* at = w + (2 * sixteen + eight) * kPairBytes;
#pragma GCC unroll 8
      for (int pair = 0; pair < kRowPairs; ++pair) {
        const int8x16_t weights = vreinterpretq_s8_u8(load_step(at, pair));
#pragma GCC unroll 2
        for (int i = 0; i < kPairs; ++i) {
          const bool begins = sixteen == 0 && eight == 0;
          const int32x4_t before = begins ? vdupq_n_s32(0) : sum[i][pair];
          sum[i][pair] = vmmlaq_s32(before, inputs[i][eight], weights);
        }
      }
    }
  }
}

// Row r of the 2 x 2 products of two pairs of the panel's rows: four neighbours.
[[gnu::always_inline]] inline int32x4_t row_of(int32x4_t first, int32x4_t second, int r) {
  const int64x2_t a = vreinterpretq_s64_s32(first), b = vreinterpretq_s64_s32(second);
  return vreinterpretq_s32_s64(r % 2 == 0 ? vzip1q_s64(a, b) : vzip2q_s64(a, b));
}

template <typename F, int kRows>
void run_pair_tile(const panel::PanelProduct& p, int64_t row) {
  Floats acc[kRows][kParts];
  load_sums<kRows>(p, row, acc);
  const int64_t spans = p.in / F::kSpan;
  for (int64_t span = 0; span < spans; ++span) {
    const SpanInputs<F> x(p, row, span);
    int32x4_t sum[(kRows + 1) / 2][kRowPairs];
    dot_pairs<F, kRows>(p.panel.q + span * F::kSpan * panel::kPanelRows, x, sum);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const InputScale scale = x.scale(r);
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        const int32x4_t dot = row_of(sum[r / 2][2 * part], sum[r / 2][2 * part + 1], r);
        acc[r][part] =
            add_span<F>(acc[r][part], dot, unpacked_scale<F>(p.panel, span, part), scale);
      }
    }
  }
  store_sums<kRows>(p, row, acc);
}

template <typename F>
void run_pair_rows(const panel::PanelProduct& p) {
  int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) run_pair_tile<F, 4>(p, row);
  if (p.rows - row >= 2) {
    run_pair_tile<F, 2>(p, row);
    row += 2;
  }
  if (row < p.rows) run_pair_tile<F, 1>(p, row);
}

template <typename F>
constexpr panel::PanelKernels block_kernels() {
  return {.input = panel::InputForm::quantized,
          .row = &run_row<F>,
          .unpack = &unpack_pairs<F>,
          .rows = &run_pair_rows<F>};
}

}  // namespace
