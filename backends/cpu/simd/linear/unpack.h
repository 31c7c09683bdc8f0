#pragma once
// Panels of block formats unpacked to bytes, and groups of quantized rows, for any width of
// vectors: include after vec_<isa>.h and formats.h.

#include "backends/cpu/linear/kernels.h"

namespace {

struct Heads {
  Head parts[kParts];
};

template <typename F>
[[gnu::always_inline]] inline Heads heads_of(const typename F::Record& record) {
  Heads heads;
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) heads.parts[part] = F::head(record, part);
  return heads;
}

template <typename F>
[[gnu::always_inline]] inline void unpack_group(const typename F::Record& record, int g,
                                                const Heads& heads,
                                                const panel::UnpackedPanel& out) {
  constexpr int kHalves = 32 / F::kSpan;
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) {
    // All before the first is stored: what steps share is then computed once.
    Bytes steps[panel::kSteps];
#pragma GCC unroll 8
    for (int s = 0; s < panel::kSteps; ++s) steps[s] = F::step(record, g, s, part);
#pragma GCC unroll 8
    for (int s = 0; s < panel::kSteps; ++s) {
      store_step(out.q + s * panel::kStepBytes, part, steps[s]);
    }
#pragma GCC unroll 4
    for (int half = 0; half < kHalves; ++half) {
      const Scale scale = F::scale(record, heads.parts[part], g, half, part);
      store_floats(out.scale + half * panel::kPanelRows, part, scale.scale);
      if constexpr (kHasOffset<F>) {
        store_floats(out.offset + half * panel::kPanelRows, part, scale.offset);
      }
    }
  }
}

template <typename F>
void unpack(const std::byte* packed, int64_t in, const panel::UnpackedPanel& out) {
  const auto* records = reinterpret_cast<const typename F::Record*>(packed);
  const int64_t count = in / (32 * F::kGroups);
  constexpr int kScales = 32 / F::kSpan * panel::kPanelRows;  // of one group
  panel::UnpackedPanel to = out;
  for (int64_t i = 0; i < count; ++i) {
    const typename F::Record& record = records[i];
    const Heads heads = heads_of<F>(record);
    for (int g = 0; g < F::kGroups; ++g) {
      unpack_group<F>(record, g, heads, to);
      to.q += panel::kSteps * panel::kStepBytes;
      to.scale += kScales;
      to.offset += kScales;
    }
  }
}

// One group of a quantized row: 32 inputs, their scale, and a sum for each of the format's spans.
struct InputGroup {
  const int8_t* q;
  const float* scale;
  const float* sums;
};

template <int kSpan>
[[gnu::always_inline]] inline InputGroup input_group(const panel::InputRows& x, int64_t group) {
  const float* sums = kSpan == 32 ? x.sum32 + group : x.sum16 + 2 * group;
  return {x.q + 32 * group, x.scale + group, sums};
}

}  // namespace
