#pragma once
// Products of bf16 with BF16 of arm64: bfmmla multiplies four inputs of two rows of x by those of
// two rows of the panel, bfdot two last inputs. Include after vec_neon.h.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/linear/prefetch.h"

namespace {

constexpr int kBf16Pairs = panel::kPanelRows / 2;  // pairs of a panel's rows

[[gnu::always_inline]] inline bfloat16x8_t as_bf16(Bytes x) {
  return vreinterpretq_bf16_u8(x);
}

void round_to_bf16(const float* x, int64_t in, uint16_t* out) {
  int64_t i = 0;
  for (; i + 8 <= in; i += 8) {
    const bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(x + i));
    vst1q_u16(out + i, vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(low, vld1q_f32(x + i + 4))));
  }
  if (i == in) return;
  float rest[8] = {};
  uint16_t rounded[8];
  for (int64_t j = i; j < in; ++j) rest[j - i] = x[j];
  round_to_bf16(rest, 8, rounded);
  for (int64_t j = i; j < in; ++j) out[j] = rounded[j - i];
}

// Inputs k and k + 1 of one row in all lanes.
[[gnu::always_inline]] inline bfloat16x8_t broadcast_pair(const uint16_t* x) {
  uint32_t two;
  __builtin_memcpy(&two, x, sizeof(two));
  return as_bf16(lanes_of(two));
}

// Four inputs, of two packed steps, of a pair of the panel's rows side by side.
[[gnu::always_inline]] inline Bytes joined(const std::byte* steps, int pair) {
  const uint32x4_t first = lanes_in(load_step(steps, pair / 2));
  const uint32x4_t second = lanes_in(load_step(steps + panel::kStepBytes, pair / 2));
  return bytes_in(pair % 2 == 0 ? vzip1q_u32(first, second) : vzip2q_u32(first, second));
}

// Four inputs of two rows side by side, [in / 4][8 pairs of rows][2][4]; of two last inputs as they
// are packed.
void join_fours(const std::byte* packed, int64_t in, const panel::UnpackedPanel& out) {
  int64_t k = 0;
  for (; k + 4 <= in; k += 4) {
    const std::byte* from = packed + k / 2 * panel::kStepBytes;
    uint16_t* to = out.bf16 + k * panel::kPanelRows;
#pragma GCC unroll 8
    for (int pair = 0; pair < kBf16Pairs; ++pair) store_step(to, pair, joined(from, pair));
  }
  if (k == in) return;
  for (int part = 0; part < kParts; ++part) {
    const Bytes last = load_step(packed + k / 2 * panel::kStepBytes, part);
    store_step(out.bf16 + k * panel::kPanelRows, part, last);
  }
}

// The sums of two rows of x with pairs of the panel's rows: lane 2 i + j is row i of x, row j of
// the pair.
struct Bf16Sums {
  Floats pairs[kBf16Pairs];
};

[[gnu::always_inline]] inline Floats halves(Floats a, Floats b, bool upper) {
  const float64x2_t x = vreinterpretq_f64_f32(a), y = vreinterpretq_f64_f32(b);
  return vreinterpretq_f32_f64(upper ? vzip2q_f64(x, y) : vzip1q_f64(x, y));
}

[[gnu::always_inline]] inline bfloat16x8_t two_rows(const uint16_t* first, const uint16_t* second) {
  return vreinterpretq_bf16_u16(vcombine_u16(vld1_u16(first), vld1_u16(second)));
}

// One row of x, with the packed panel. It stands for both rows of a pair: every row gets the same
// bits, however many there are.
void run_bf16_row(const panel::PanelProduct& p) {
  Bf16Sums sums;
#pragma GCC unroll 8
  for (Floats& pair : sums.pairs) pair = all(0);
  int64_t k = 0;
  for (; k + 4 <= p.in; k += 4) {
    const std::byte* steps = p.packed + k / 2 * panel::kStepBytes;
    fetch_line_ahead(steps);
    fetch_line_ahead(steps + panel::kStepBytes);
    const bfloat16x8_t x = two_rows(p.x.bf16 + k, p.x.bf16 + k);
#pragma GCC unroll 8
    for (int pair = 0; pair < kBf16Pairs; ++pair) {
      sums.pairs[pair] = vbfmmlaq_f32(sums.pairs[pair], x, as_bf16(joined(steps, pair)));
    }
  }
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) {
    Floats sum = halves(sums.pairs[2 * part], sums.pairs[2 * part + 1], false);
    if (k < p.in) {
      const Bytes last = load_step(p.packed + k / 2 * panel::kStepBytes, part);
      sum = vbfdotq_f32(sum, as_bf16(last), broadcast_pair(p.x.bf16 + k));
    }
    store_floats(p.y, part, sum);
  }
}

// kRows rows of x in pairs; where a second row is missing, the first one stands for it.
template <int kRows>
void run_bf16_tile(const panel::PanelProduct& p, int64_t row) {
  constexpr int kPairs = (kRows + 1) / 2;
  const auto second = [](int i) { return 2 * i + 1 < kRows ? 2 * i + 1 : 2 * i; };
  const uint16_t* x = p.x.bf16 + row * p.x.stride;
  float* y = p.y + row * p.y_stride;
  Bf16Sums sums[kPairs];
#pragma GCC unroll 2
  for (int i = 0; i < kPairs; ++i) {
#pragma GCC unroll 8
    for (int pair = 0; pair < kBf16Pairs; ++pair) {
      const auto start = [&](int r) {
        return p.accumulate ? load_floats(y + r * p.y_stride, pair / 2) : all(0);
      };
      sums[i].pairs[pair] = halves(start(2 * i), start(second(i)), pair % 2 != 0);
    }
  }
  int64_t k = 0;
  for (; k + 4 <= p.in; k += 4) {
    bfloat16x8_t inputs[kPairs];
#pragma GCC unroll 2
    for (int i = 0; i < kPairs; ++i) {
      inputs[i] = two_rows(x + 2 * i * p.x.stride + k, x + second(i) * p.x.stride + k);
    }
#pragma GCC unroll 8
    for (int pair = 0; pair < kBf16Pairs; ++pair) {
      const bfloat16x8_t weights = as_bf16(load_step(p.panel.bf16 + k * panel::kPanelRows, pair));
#pragma GCC unroll 2
      for (int i = 0; i < kPairs; ++i) {
        sums[i].pairs[pair] = vbfmmlaq_f32(sums[i].pairs[pair], inputs[i], weights);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      const Bf16Sums& two = sums[r / 2];
      Floats sum = halves(two.pairs[2 * part], two.pairs[2 * part + 1], r % 2 != 0);
      if (k < p.in) {
        const Bytes last = load_step(p.panel.bf16 + k * panel::kPanelRows, part);
        sum = vbfdotq_f32(sum, as_bf16(last), broadcast_pair(x + r * p.x.stride + k));
      }
      store_floats(y + r * p.y_stride, part, sum);
    }
  }
}

void run_bf16_rows(const panel::PanelProduct& p) {
  int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) run_bf16_tile<4>(p, row);
  if (p.rows - row >= 2) {
    run_bf16_tile<2>(p, row);
    row += 2;
  }
  if (row < p.rows) run_bf16_tile<1>(p, row);
}

}  // namespace
