#pragma once
// The elements of a key or value that a lane reads at once, and 8-bit caches for matrix units.

#include "backends/gpu/e4m3_dot.h"
#include "backends/gpu/kernels/attention.h"

namespace rbee {
namespace gpu {

// Neighbours that a lane reads at once: 16 bytes; 8 bytes of 8-bit types, so that sums take no more
// registers than with 16-bit ones.
template <class KV>
constexpr int kRun = sizeof(KV) == 1 ? 8 : 16 / static_cast<int>(sizeof(KV));

template <class KV>
struct alignas(kRun<KV> * sizeof(KV)) RunOf {
  u32 words[kRun<KV> * sizeof(KV) / 4];
};
// Of a q8_0 cache: the codes lie together, their scale elsewhere.
struct alignas(8) PageCodes {
  u32 words[2];
};
template <>
struct RunOf<PageCode> : PageCodes {
  f16 scale;
};

// Elements [first, first + 8) of a row of a q8_0 cache.
RB_DEVICE RunOf<PageCode> load_page_run(const PageRow& row, u32 first) {
  return {*reinterpret_cast<const PageCodes*>(row.codes + first), row.scale(first)};
}

// Elements [first, first + 8) of key or value `key` in a cache of 8-bit elements.
template <class KV>
RB_DEVICE RunOf<KV> load_run(const AttentionParams& p, const void* cache,
                             const AttentionStrides& at, const TileWork& work, i64 key, int first) {
  static_assert(sizeof(KV) == 1, "of wider elements runs are shorter");
  if constexpr (SameType<KV, PageCode>::value) {
    return load_page_run(page_row(p, cache, work.span, work.kv_head, key), first);
  } else {
    const i64 from = key_offset(p, at, work.span, work.kv_head, key) + first;
    return *reinterpret_cast<const RunOf<KV>*>(static_cast<const u8*>(cache) + from);
  }
}

// A run of 8-bit elements as 16-bit ones.
template <class T, class KV>
RB_DEVICE Pack<T> widen(const RunOf<KV>& run) {
#if defined(RB_E4M3_HALVES)
  if constexpr (SameType<KV, f8e4m3>::value && SameType<T, f16>::value) {
    Pack<T> halves;
#pragma unroll
    for (int i = 0; i < kRun<KV>; i += 4) {
      u32 pairs[2];
      e4m3_halves(run.words[i / 4], pairs);
#pragma unroll
      for (int j = 0; j < 4; ++j) halves.values[i + j] = element<T>(pairs, j);
    }
    return halves;
  }
#endif
  float scale = 1.0f;
  if constexpr (SameType<KV, PageCode>::value) scale = to_float(run.scale);
  Pack<T> out;
#pragma unroll
  for (int i = 0; i < kRun<KV>; ++i) {
    out.values[i] = store_value<T>(load_value(element<KV>(run.words, i)) * scale);
  }
  return out;
}

}  // namespace gpu
}  // namespace rbee
