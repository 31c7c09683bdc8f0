#pragma once
// Products of one quantized row with packed panels, in vectors of 16 bytes: include after
// dots_<isa>.h.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/linear/prefetch.h"
#include "backends/cpu/simd/linear/unpack.h"

namespace {

// sum + x, in this order: the empty statement hides from GCC that sums may be reordered.
[[gnu::always_inline]] inline int32x4_t added32(int32x4_t sum, int32x4_t x) {
  sum = vaddq_s32(sum, x);
  asm("" : "+w"(sum));
  return sum;
}

// Dot products of span `half` of group g with x, the group's first input.
template <typename F>
[[gnu::always_inline]] inline int32x4_t dot_span(const typename F::Record& record, int g, int half,
                                                 int part, const int8_t* x) {
  constexpr int kSpanSteps = F::kSpan / 4, kChain = Dots<F>::kSteps;
  const int8x16_t inputs[2] = {vld1q_s8(x), vld1q_s8(x + 16)};
  int32x4_t sum;
#pragma GCC unroll 8
  for (int link = 0; link < kSpanSteps; link += kChain) {
    typename Dots<F>::Sum chain;
#pragma GCC unroll 8
    for (int i = 0; i < kChain; ++i) {
      const int s = half * kSpanSteps + link + i;
      const int8x16_t w = vreinterpretq_s8_u8(F::step(record, g, s, part));
      chain = i == 0 ? Dots<F>::first(w, inputs[s / 4], s % 4)
                     : Dots<F>::added(chain, w, inputs[s / 4], s % 4);
    }
    const int32x4_t wide = Dots<F>::widened(chain);
    sum = link == 0 ? wide : added32(sum, wide);
  }
  return sum;
}

// x's factors for a span: its scale, and its scale times the sum of its quants, which is multiplied
// by the offset or by -kShift.
struct InputScale {
  Floats scale, sum;
};

template <typename F>
[[gnu::always_inline]] inline InputScale input_scale(const float* scale, const float* sum) {
  const Floats x_sum = all(*sum);
  return {all(*scale), kHasOffset<F> ? x_sum : times(x_sum, all(-F::kShift))};
}

// acc += (scale * dot + offset * sum of quants) * x's scale
template <typename F>
[[gnu::always_inline]] inline Floats add_span(Floats acc, int32x4_t dot, const Scale& scale,
                                              const InputScale& x) {
  const Floats sum = vcvtq_f32_s32(dot);
  if constexpr (F::kShift != 0) return fused(fused(sum, x.scale, x.sum), scale.scale, acc);
  acc = fused(times(sum, x.scale), scale.scale, acc);
  return F::kSigned ? acc : fused(x.sum, scale.offset, acc);
}

template <typename F>
[[gnu::always_inline]] inline void add_group(const typename F::Record& record, int g,
                                             const Heads& heads, const InputGroup& x,
                                             Floats (&acc)[kParts]) {
#pragma GCC unroll 2
  for (int half = 0; half < 32 / F::kSpan; ++half) {
    const InputScale inputs = input_scale<F>(x.scale, x.sums + half);
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      const int32x4_t dot = dot_span<F>(record, g, half, part, x.q);
      const Scale scale = F::scale(record, heads.parts[part], g, half, part);
      acc[part] = add_span<F>(acc[part], dot, scale, inputs);
    }
  }
}

template <typename F>
void run_row(const panel::PanelProduct& p) {
  const auto* records = reinterpret_cast<const typename F::Record*>(p.packed);
  const int64_t count = p.in / (32 * F::kGroups);
  Floats acc[kParts];
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) acc[part] = all(0);
  for (int64_t i = 0; i < count; ++i) {
    const typename F::Record& record = records[i];
    const Heads heads = heads_of<F>(record);
    for (int g = 0; g < F::kGroups; ++g) {
      fetch_group_ahead<F>(record, g);
      add_group<F>(record, g, heads, input_group<F::kSpan>(p.x, i * F::kGroups + g), acc);
    }
  }
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) store_floats(p.y, part, acc[part]);
}

// The factors of one span of an unpacked panel.
template <typename F>
[[gnu::always_inline]] inline Scale unpacked_scale(const panel::UnpackedPanel& from, int64_t span,
                                                   int part) {
  Scale scale{};
  scale.scale = load_floats(from.scale + span * panel::kPanelRows, part);
  if constexpr (kHasOffset<F>) {
    scale.offset = load_floats(from.offset + span * panel::kPanelRows, part);
  }
  return scale;
}

// Some rows of x over one span of the unpacked panel: quants, scales and sums of row r are r
// strides further.
template <typename F>
struct SpanInputs {
  [[gnu::always_inline]] SpanInputs(const panel::PanelProduct& p, int64_t row, int64_t span)
      : stride(p.x.stride),
        q(p.x.q + row * stride + span * F::kSpan),
        scales(p.x.scale + row * (stride / 32) + span * F::kSpan / 32),
        sums((F::kSpan == 32 ? p.x.sum32 : p.x.sum16) + row * (stride / F::kSpan) + span) {}

  [[gnu::always_inline]] InputScale scale(int r) const {
    return input_scale<F>(scales + r * (stride / 32), sums + r * (stride / F::kSpan));
  }

  int64_t stride;
  const int8_t* q;
  const float* scales;
  const float* sums;
};

template <int kRows>
[[gnu::always_inline]] inline void load_sums(const panel::PanelProduct& p, int64_t row,
                                             Floats (&acc)[kRows][kParts]) {
  const float* y = p.y + row * p.y_stride;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      acc[r][part] = p.accumulate ? load_floats(y + r * p.y_stride, part) : all(0);
    }
  }
}

template <int kRows>
[[gnu::always_inline]] inline void store_sums(const panel::PanelProduct& p, int64_t row,
                                              const Floats (&acc)[kRows][kParts]) {
  float* y = p.y + row * p.y_stride;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) store_floats(y + r * p.y_stride, part, acc[r][part]);
  }
}

}  // namespace
