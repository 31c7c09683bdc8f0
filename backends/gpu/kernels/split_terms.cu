// What products of x in f32 with 16-bit weights need beside the products: cutting x into terms of
// 16 bits, and adding the terms' products. Memory limits it.
#include "backends/gpu/portable.h"
#include "backends/shared/product_params.h"

namespace rbee {
namespace gpu {

constexpr int kEach = 4;  // elements that a thread takes at once

template <class T>
struct alignas(sizeof(T) * kEach) Four {
  T values[kEach];
};

// For f16 a row's largest element is scaled to [2^14, 2^15), so that none overflows and few are
// below the normal numbers; the second term, at most 2^-12 of the first, is scaled alike.
template <class T>
struct Split {
  static constexpr int kTerms = kBf16Terms;
  static constexpr float kStep = 1;
};
template <>
struct Split<f16> {
  static constexpr int kTerms = kF16Terms;
  static constexpr float kStep = 2048;
};

// 2^-n for the largest magnitude's bits; 2^n would scale it to [2^14, 2^15). NaN is the largest.
RB_DEVICE u32 scale_exponent(u32 largest) {
  const u32 exponent = largest >> 23;
  return exponent < 15 ? 15 : exponent > 254 ? 254 : exponent;
}

template <class T, int kWave>
RB_DEVICE void split_x(const SplitXParams& p) {
  RB_SHARED u32 slots[kSplitThreads / kWave];
  const i64 row = block_x();
  const float* x = p.x + row * p.depth;
  float scale = 1, inverse = 1;
  if constexpr (Split<T>::kStep != 1) {
    u32 largest = 0;
    for (i64 i = thread_x() * kEach; i < p.depth; i += kSplitThreads * kEach) {
      const Pack<float> in = load128(x + i);
      for (int k = 0; k < kEach; ++k) {
        largest = Max{}(largest, bits_of_float(in.values[k]) & 0x7fffffffu);
      }
    }
    const u32 exponent = scale_exponent(block_max<kWave, kSplitThreads>(largest, slots));
    scale = float_of_bits((exponent - 14) << 23);
    inverse = float_of_bits((268 - exponent) << 23);
  }
  T* terms = static_cast<T*>(p.terms) + row * p.depth;
  for (i64 i = thread_x() * kEach; i < p.depth; i += kSplitThreads * kEach) {
    const Pack<float> in = load128(x + i);
    float rest[kEach];
    for (int k = 0; k < kEach; ++k) rest[k] = in.values[k] * inverse;
#pragma unroll
    for (int term = 0; term < Split<T>::kTerms; ++term) {
      Four<T> out;
      for (int k = 0; k < kEach; ++k) {
        out.values[k] = store_value<T>(rest[k]);
        const float left = rest[k] - load_value(out.values[k]);
        // Infinity and NaN leave no rest.
        rest[k] = left - left == 0.0f ? left * Split<T>::kStep : 0.0f;
      }
      *reinterpret_cast<Four<T>*>(terms + term * p.rows * p.depth + i) = out;
    }
  }
  if (thread_x() == 0) p.scales[row] = scale;
}

// A block takes kJoinThreads * kJoinEach outs of a row.
RB_DEVICE void add_products(const JoinTermsParams& p) {
  constexpr u32 kOuts = kJoinThreads * kJoinEach;
  const u32 across = (static_cast<u32>(p.outs) + kOuts - 1) / kOuts;
  const i64 row = block_x() / across;
  const i64 term = p.rows * p.outs;
  const float scale = p.scales[row / p.each];
  const float* bias = p.bias;
  if (bias != nullptr && p.experts != nullptr) bias += static_cast<i64>(p.experts[row]) * p.outs;
#pragma unroll
  for (int k = 0; k < kJoinEach; ++k) {
    const u32 out = block_x() % across * kOuts + k * kJoinThreads + thread_x();
    if (out >= static_cast<u32>(p.outs)) break;
    const float* from = p.products + row * p.outs + out;
    float sum = from[(p.terms - 1) * term];
    for (int t = p.terms - 2; t >= 0; --t) sum = sum * p.step + from[t * term];
    sum *= scale;
    p.y[row * p.y_row + out] = bias != nullptr ? sum + bias[out] : sum;
  }
}

#define RB_SPLIT(lanes, wave, dtype, T) \
  RB_KERNEL(split_x_##dtype##_##wave, kSplitThreads, SplitXParams, (split_x<T, lanes>(p)))
RB_WAVES(RB_SPLIT, f16, f16)
RB_WAVES(RB_SPLIT, bf16, bf16)
RB_KERNEL(join_terms, kJoinThreads, JoinTermsParams, add_products(p))

}  // namespace gpu
}  // namespace rbee
