#pragma once
// Float weights: sums in float, x as float, for any width of vectors: include after vec_<isa>.h.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/linear/prefetch.h"

namespace {

// Four inputs of the 16 rows. A format F has kInputBytes of one input, four(data, k): inputs k to
// k + 3, and load(data, k, part): a part of input k.
struct Four {
  Floats values[4][kParts];
};

struct FormatF32 {
  static constexpr int kInputBytes = 4 * panel::kPanelRows;
  [[gnu::always_inline]] static Floats load(const std::byte* data, int64_t k, int part) {
    return load_floats(reinterpret_cast<const float*>(data) + k * panel::kPanelRows, part);
  }
  [[gnu::always_inline]] static Four four(const std::byte* data, int64_t k) {
    Four w;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) w.values[i][part] = load(data, k + i, part);
    }
    return w;
  }
};

// Reads whole vectors and halves them: two loads of a line that is still on its way take longer
// than one.
struct FormatF16 {
  static constexpr int kInputBytes = 2 * panel::kPanelRows;
  [[gnu::always_inline]] static Floats load(const std::byte* data, int64_t k, int part) {
    return load_halves(reinterpret_cast<const uint16_t*>(data) + k * panel::kPanelRows, part);
  }
  [[gnu::always_inline]] static Four four(const std::byte* data, int64_t k) {
    Four w;
#pragma GCC unroll 8
    for (int i = 0; i < 2 * kParts; ++i) {
      const Bytes both_halves = load_step(data + k * kInputBytes, i);
      const int low = 2 * i, high = low + 1;
      w.values[low / kParts][low % kParts] = low_halves(both_halves);
      w.values[high / kParts][high % kParts] = high_halves(both_halves);
    }
    return w;
  }
};

// Pairs of inputs share 32 bits: the even one moves up, the odd one loses its neighbour.
struct FormatBf16 {
  static constexpr int kInputBytes = 2 * panel::kPanelRows;
  [[gnu::always_inline]] static Bytes pair(const std::byte* data, int64_t k, int part) {
    return load_step(data + k / 2 * panel::kStepBytes, part);
  }
  [[gnu::always_inline]] static Floats load(const std::byte* data, int64_t k, int part) {
    const Bytes both_inputs = pair(data, k, part);
    return k % 2 == 0 ? low_bf16(both_inputs) : high_bf16(both_inputs);
  }
  [[gnu::always_inline]] static Four four(const std::byte* data, int64_t k) {
    Four w;
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      const Bytes first = pair(data, k, part), second = pair(data, k + 2, part);
      w.values[0][part] = low_bf16(first);
      w.values[1][part] = high_bf16(first);
      w.values[2][part] = low_bf16(second);
      w.values[3][part] = high_bf16(second);
    }
    return w;
  }
};

// As few sums as keep up with memory. With more, loads run so far ahead that they request lines in
// the first-level cache before these are in the second.
template <typename F>
void run_float_row(const panel::PanelProduct& p) {
  Floats sums[kRowSums][kParts];
#pragma GCC unroll 4
  for (int i = 0; i < kRowSums; ++i) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) sums[i][part] = all(0);
  }
  const float* x = p.x.f32;
  int64_t k = 0;
  for (; k + 4 <= p.in; k += 4) {
#pragma GCC unroll 4
    for (int byte = 0; byte < 4 * F::kInputBytes; byte += 64) {
      fetch_line_ahead(p.packed + k * F::kInputBytes + byte);
    }
    const Four w = F::four(p.packed, k);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        Floats& sum = sums[i % kRowSums][part];
        sum = fused(w.values[i][part], all(x[k + i]), sum);
      }
    }
  }
  for (; k < p.in; ++k) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      sums[0][part] = fused(F::load(p.packed, k, part), all(x[k]), sums[0][part]);
    }
  }
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 4
    for (int i = 1; i < kRowSums; ++i) sums[0][part] = plus(sums[0][part], sums[i][part]);
    store_floats(p.y, part, sums[0][part]);
  }
}

template <typename F>
void unpack_floats(const std::byte* packed, int64_t in, const panel::UnpackedPanel& out) {
  for (int64_t k = 0; k < in; ++k) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      store_floats(out.f32 + k * panel::kPanelRows, part, F::load(packed, k, part));
    }
  }
}

// kRows rows of x with kPanels panels side by side.
template <int kRows, int kPanels>
void run_float_tile(const panel::PanelProduct* const (&panels)[kPanels], int64_t row) {
  constexpr int kWide = kPanels * kParts;
  const panel::PanelProduct& p = *panels[0];
  Floats acc[kRows][kWide];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kWide; ++i) {
      const float* y = panels[i / kParts]->y + (row + r) * p.y_stride;
      acc[r][i] = p.accumulate ? load_floats(y, i % kParts) : all(0);
    }
  }
  const float* x = p.x.f32 + row * p.x.stride;
  const float* w[kPanels];
#pragma GCC unroll 2
  for (int i = 0; i < kPanels; ++i) w[i] = panels[i]->panel.f32;
#pragma GCC unroll 4
  for (int64_t k = 0; k < p.in; ++k) {
    Floats weights[kWide];
#pragma GCC unroll 4
    for (int i = 0; i < kWide; ++i) {
      weights[i] = load_floats(w[i / kParts] + k * panel::kPanelRows, i % kParts);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const Floats input = all(x[r * p.x.stride + k]);
#pragma GCC unroll 4
      for (int i = 0; i < kWide; ++i) acc[r][i] = fused(weights[i], input, acc[r][i]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kWide; ++i) {
      store_floats(panels[i / kParts]->y + (row + r) * p.y_stride, i % kParts, acc[r][i]);
    }
  }
}

template <int kPanels>
void run_float_tiles(const panel::PanelProduct* const (&panels)[kPanels]) {
  const int64_t rows = panels[0]->rows;
  int64_t row = 0;
  for (; row + kFloatTile <= rows; row += kFloatTile) run_float_tile<kFloatTile>(panels, row);
  for (; rows - row >= 4; row += 4) run_float_tile<4>(panels, row);
  if (rows - row >= 2) {
    run_float_tile<2>(panels, row);
    row += 2;
  }
  if (row < rows) run_float_tile<1>(panels, row);
}

void run_float_rows(const panel::PanelProduct& p) {
  run_float_tiles({&p});
}

// A number of x meets two vectors of weights for one load of its own.
void run_float_pair(const panel::PanelProduct& first, const panel::PanelProduct& second) {
  run_float_tiles({&first, &second});
}

// f32 is unpacked as it is packed.
panel::PanelProduct plain_f32(const panel::PanelProduct& p) {
  panel::PanelProduct plain = p;
  plain.panel.f32 = const_cast<float*>(reinterpret_cast<const float*>(p.packed));
  return plain;
}

void run_packed_f32_rows(const panel::PanelProduct& p) {
  run_float_rows(plain_f32(p));
}

void run_packed_f32_pair(const panel::PanelProduct& first, const panel::PanelProduct& second) {
  run_float_pair(plain_f32(first), plain_f32(second));
}

// Two panels where a vector is all 16 rows; more sums than that do not fit into 16 registers.
constexpr bool kFloatPairs = kParts == 1;

constexpr panel::PanelKernels kF32Kernels{.input = panel::InputForm::f32,
                                          .row = &run_float_row<FormatF32>,
                                          .unpack = nullptr,
                                          .rows = &run_packed_f32_rows,
                                          .pair = kFloatPairs ? &run_packed_f32_pair : nullptr};
constexpr panel::PanelKernels kF16Kernels{.input = panel::InputForm::f32,
                                          .row = &run_float_row<FormatF16>,
                                          .unpack = &unpack_floats<FormatF16>,
                                          .rows = &run_float_rows,
                                          .pair = kFloatPairs ? &run_float_pair : nullptr};
constexpr panel::PanelKernels kBf16Kernels{.input = panel::InputForm::f32,
                                           .row = &run_float_row<FormatBf16>,
                                           .unpack = &unpack_floats<FormatBf16>,
                                           .rows = &run_float_rows,
                                           .pair = kFloatPairs ? &run_float_pair : nullptr};

}  // namespace
