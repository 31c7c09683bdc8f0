#pragma once
// Products of one quantized row with packed panels, in vectors of 32 bytes: include after
// dots_<isa>.h.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/linear/prefetch.h"
#include "backends/cpu/simd/linear/unpack.h"

namespace {

[[gnu::always_inline]] inline __m256i broadcast_inputs(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  return _mm256_set1_epi32(four);
}

// sum + x, in this order: see Dots.
[[gnu::always_inline]] inline __m256i added32(__m256i sum, __m256i x) {
  sum = _mm256_add_epi32(sum, x);
  asm("" : "+x"(sum));
  return sum;
}

// Dot products of span `half` of group g with x, the group's first input.
template <typename F>
[[gnu::always_inline]] inline __m256i dot_span(const typename F::Record& record, int g, int half,
                                               int part, const int8_t* x) {
  constexpr int kSpanSteps = F::kSpan / 4, kChain = Dots<F>::kRowSteps;
  __m256i sum;
#pragma GCC unroll 8
  for (int link = 0; link < kSpanSteps; link += kChain) {
    __m256i chain;
#pragma GCC unroll 8
    for (int i = 0; i < kChain; ++i) {
      const int s = half * kSpanSteps + link + i;
      const __m256i w = F::step(record, g, s, part);
      const __m256i inputs = broadcast_inputs(x + 4 * s);
      chain = i == 0 ? Dots<F>::first(w, inputs) : Dots<F>::added(chain, w, inputs);
    }
    const __m256i wide = Dots<F>::widened(chain);
    sum = link == 0 ? wide : added32(sum, wide);
  }
  return sum;
}

// x's factors for a span: its scale, and its scale times the sum of its quants, which is multiplied
// by the offset or by -kShift.
struct InputScale {
  __m256 scale, sum;
};

template <typename F>
[[gnu::always_inline]] inline InputScale input_scale(const float* scale, const float* sum) {
  const __m256 x_sum = _mm256_broadcast_ss(sum);
  return {_mm256_broadcast_ss(scale), kHasOffset<F> ? x_sum : times(x_sum, all(-F::kShift))};
}

// acc += (scale * dot + offset * sum of quants) * x's scale
template <typename F>
[[gnu::always_inline]] inline __m256 add_span(__m256 acc, __m256i dot, const Scale& scale,
                                              const InputScale& x) {
  const __m256 sum = _mm256_cvtepi32_ps(dot);
  if constexpr (F::kShift != 0) return fused(fused(sum, x.scale, x.sum), scale.scale, acc);
  acc = fused(times(sum, x.scale), scale.scale, acc);
  return F::kSigned ? acc : fused(x.sum, scale.offset, acc);
}

template <typename F>
[[gnu::always_inline]] inline void add_group(const typename F::Record& record, int g,
                                             const Heads& heads, const InputGroup& x,
                                             __m256 (&acc)[kParts]) {
#pragma GCC unroll 2
  for (int half = 0; half < 32 / F::kSpan; ++half) {
    const InputScale inputs = input_scale<F>(x.scale, x.sums + half);
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      const __m256i dot = dot_span<F>(record, g, half, part, x.q);
      const Scale scale = F::scale(record, heads.parts[part], g, half, part);
      acc[part] = add_span<F>(acc[part], dot, scale, inputs);
    }
  }
}

template <typename F>
void run_row(const panel::PanelProduct& p) {
  const auto* records = reinterpret_cast<const typename F::Record*>(p.packed);
  const int64_t count = p.in / (32 * F::kGroups);
  __m256 acc[kParts];
#pragma GCC unroll 2
  for (int part = 0; part < kParts; ++part) acc[part] = _mm256_setzero_ps();
  for (int64_t i = 0; i < count; ++i) {
    const typename F::Record& record = records[i];
    const Heads heads = heads_of<F>(record);
    for (int g = 0; g < F::kGroups; ++g) {
      fetch_group_ahead<F>(record, g);
      add_group<F>(record, g, heads, input_group<F::kSpan>(p.x, i * F::kGroups + g), acc);
    }
  }
#pragma GCC unroll 2
  for (int part = 0; part < kParts; ++part) store_floats(p.y, part, acc[part]);
}

}  // namespace
