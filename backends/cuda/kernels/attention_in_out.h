#pragma once
// Shared by the attention kernels for NVIDIA's tensor cores: queries, results, largest scores.

#include "backends/cuda/kernels/mma_ptx.h"
#include "backends/gpu/kernels/attention.h"

namespace rbee {
namespace gpu {

// Among the four lanes that hold a row's columns.
RB_DEVICE float row_max(float x) {
  return wave_reduce<32, 4>(x, MaxNumber{});
}

// Eight elements of q from offset `from`; f32 ones are rounded to T.
template <class T>
RB_DEVICE Pack<T> load_query(const AttentionParams& p, i64 from) {
  if (p.q_type != AttentionType::f32) return load128(static_cast<const T*>(p.q) + from);
  Pack<T> out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Pack<float> in = load128(static_cast<const float*>(p.q) + from + 4 * half);
#pragma unroll
    for (int i = 0; i < 4; ++i) out.values[4 * half + i] = store_value<T>(in.values[i]);
  }
  return out;
}

// Two neighbours of y, of q's type.
template <class T>
RB_DEVICE void store_result(const AttentionParams& p, i64 to, float first, float second) {
  if (p.q_type != AttentionType::f32) {
    *reinterpret_cast<u32*>(static_cast<T*>(p.y) + to) = round_pair<T>(first, second);
  } else {
    *reinterpret_cast<float2*>(static_cast<float*>(p.y) + to) = {first, second};
  }
}

// The same if the kernel multiplies q of any 16-bit type as T.
template <class T>
RB_DEVICE Pack<T> load_any_query(const AttentionParams& p, i64 from) {
  if (p.q_type != AttentionType::bf16) return load_query<T>(p, from);
  const Pack<bf16> in = load128(static_cast<const bf16*>(p.q) + from);
  Pack<T> out;
#pragma unroll
  for (int i = 0; i < 8; ++i) out.values[i] = store_value<T>(to_float(in.values[i]));
  return out;
}
template <class T>
RB_DEVICE void store_any_result(const AttentionParams& p, i64 to, float first, float second) {
  if (p.q_type != AttentionType::bf16) return store_result<T>(p, to, first, second);
  *reinterpret_cast<u32*>(static_cast<bf16*>(p.y) + to) = round_pair<bf16>(first, second);
}

}  // namespace gpu
}  // namespace rbee
