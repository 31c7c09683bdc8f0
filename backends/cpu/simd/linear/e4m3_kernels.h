#pragma once
// Weights of e4m3 codes (OCP FP8) in groups of 128, x as float: a code becomes f16 by a shift, 2^-8
// of its value, and that float. Include after vec_<isa>.h.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/linear/float_kernels.h"
#include "backends/cpu/simd/linear/prefetch.h"

namespace {

// The codes in the upper bytes of 16-bit lanes as f16.
[[gnu::always_inline]] inline Bytes halves_of_e4m3(Bytes codes) {
  return either(both(codes, words_of(0x8000)), both(shift_right(codes, 1), words_of(0x3f80)));
}

// Four inputs, each 2^-8 of its value without the group's scale.
[[gnu::always_inline]] inline Four four_of_e4m3(const uint8_t* step) {
  Four w;
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) {
    const Bytes codes = load_step(step, part);
    const Bytes halves[] = {halves_of_e4m3(shift_left(codes, 8)), halves_of_e4m3(codes)};
#pragma GCC unroll 2
    for (int pair = 0; pair < 2; ++pair) {
      const int low = 2 * (pair * kParts + part), high = low + 1;
      w.values[low / kParts][low % kParts] = low_halves(halves[pair]);
      w.values[high / kParts][high % kParts] = high_halves(halves[pair]);
    }
  }
  return w;
}

[[gnu::always_inline]] inline Floats e4m3_scale(const panel::PanelF8_G128& record, int part) {
  return times(load_floats(record.d, part), all(256));
}

// The products of one group.
[[gnu::always_inline]] inline void multiply_e4m3(const panel::PanelF8_G128& record, const float* x,
                                                 Floats (&total)[kParts]) {
  Floats sums[4][kParts];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) sums[i][part] = all(0);
  }
#pragma GCC unroll 2
  for (int s = 0; s < 32; ++s) {
    fetch_line_ahead(record.steps[s]);
    const Four w = four_of_e4m3(record.steps[s]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        sums[i][part] = fused(w.values[i][part], all(x[4 * s + i]), sums[i][part]);
      }
    }
  }
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) {
    const Floats even = plus(sums[0][part], sums[2][part]);
    const Floats odd = plus(sums[1][part], sums[3][part]);
    total[part] = fused(plus(even, odd), e4m3_scale(record, part), total[part]);
  }
}

void run_e4m3_row(const panel::PanelProduct& p) {
  const auto* records = reinterpret_cast<const panel::PanelF8_G128*>(p.packed);
  Floats total[kParts];
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) total[part] = all(0);
  for (int64_t r = 0; r < p.in / 128; ++r) multiply_e4m3(records[r], p.x.f32 + 128 * r, total);
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) store_floats(p.y, part, total[part]);
}

[[maybe_unused]] void unpack_e4m3(const std::byte* packed, int64_t in,
                                  const panel::UnpackedPanel& out) {
  const auto* records = reinterpret_cast<const panel::PanelF8_G128*>(packed);
  for (int64_t k = 0; k < in; k += 4) {
    const panel::PanelF8_G128& record = records[k / 128];
    const Four w = four_of_e4m3(record.steps[k % 128 / 4]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        store_floats(out.f32 + (k + i) * panel::kPanelRows, part,
                     times(w.values[i][part], e4m3_scale(record, part)));
      }
    }
  }
}

[[maybe_unused]] constexpr panel::PanelKernels kE4m3Kernels{
    .input = panel::InputForm::f32,
    .row = &run_e4m3_row,
    .unpack = &unpack_e4m3,
    .rows = &run_float_rows,
    .pair = kFloatPairs ? &run_float_pair : nullptr};

}  // namespace
