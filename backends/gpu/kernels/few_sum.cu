// Adds the partial sums of linear layers for few rows (FewRowsParams).
#include "backends/gpu/kernels/few_parts.h"
#include "backends/shared/few_sum_params.h"

namespace rbee {
namespace gpu {

// The sums of all splits for neighbouring outputs, in the order of the splits. from: the first
// split's; each: the distance of two. It reads four before it waits for the first of them. All
// lanes of a wave call it.
template <int kCount>
RB_DEVICE void few_totals(const float* from, i64 each, i32 splits, float (&totals)[kCount]) {
  constexpr int kAtOnce = 4, kWidth = Pack<float>::kCount, kLoads = kCount / kWidth;
#pragma unroll
  for (int i = 0; i < kCount; ++i) totals[i] = 0;
#pragma unroll 1
  for (i32 first = 0; first < splits; first += kAtOnce) {
    Pack<float> parts[kAtOnce][kLoads];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      // Without a condition: the last split replaces those that do not exist.
      const float* part = from + (first + j < splits ? first + j : splits - 1) * each;
#pragma unroll
      for (int k = 0; k < kLoads; ++k) parts[j][k] = load128(part + k * kWidth);
    }
    loads_before();
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      if (first + j >= splits) break;
#pragma unroll
      for (int i = 0; i < kCount; ++i) totals[i] += parts[j][i / kWidth].values[i % kWidth];
    }
  }
}

// y = bias + the sums. A thread has kFewSumOuts neighbouring outputs of a row of x.
template <class T>
RB_DEVICE void few_sum(const FewRowsParams& p) {
  const i32 runs = p.outs / kFewSumOuts, all = p.tiles * p.rows * runs;
  const i32 thread = static_cast<i32>(block_x()) * kFewSumThreads + static_cast<i32>(thread_x());
  const i32 at = thread < all ? thread : all - 1;
  const i32 tile = at / (p.rows * runs), within = at % (p.rows * runs);  // a row's run
  const i64 each = p.rows * p.outs;
  float totals[kFewSumOuts];
  few_totals(p.partials + tile * each * p.splits + within * kFewSumOuts, each, p.splits, totals);
  if (at != thread) return;
  const MatvecPart part = few_part(p, static_cast<u32>(tile));
  const i64 first =
      (tile - static_cast<i64>(part.first_block)) * p.outs + within % runs * kFewSumOuts;
#pragma unroll
  for (int i = 0; i < kFewSumOuts; ++i) {
    const i64 out = first + i;
    if (out >= part.outs) return;
    const float bias =
        part.bias == nullptr ? 0.0f : load_value(static_cast<const T*>(part.bias)[out]);
    static_cast<T*>(part.y)[within / runs * part.outs + out] = store_value<T>(totals[i] + bias);
  }
}

// sum = residual + bias + the sums, y = its RMS norm. A block has a row, a thread up to kPacks
// packs of it, in registers.
template <class T, int kWave, int kPacks>
RB_DEVICE void few_norm(const FewNormParams& p) {
  RB_SHARED float slots[kFewNormThreads / kWave];
  constexpr int kCount = Pack<T>::kCount;
  const i32 row = static_cast<i32>(block_x());
  const i64 start = static_cast<i64>(row) * p.dim, each = static_cast<i64>(p.rows) * p.outs;
  const i32 last = p.dim / kCount - 1;
  float values[kPacks][kCount];
  Pack<T> weights[kPacks];
  float squares = 0;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (k * kFewNormThreads > last) break;
    const i32 own = k * kFewNormThreads + static_cast<i32>(thread_x());
    const i32 out = (own < last ? own : last) * kCount, tile = out / p.outs;
    weights[k] = load128(static_cast<const T*>(p.norm_weight) + out);
    const Pack<T> residual = load128(static_cast<const T*>(p.residual) + start + out);
    Pack<T> bias = {};
    if (p.bias != nullptr) bias = load128(static_cast<const T*>(p.bias) + out);
    few_totals(p.partials + tile * each * p.splits + row * p.outs + (out - tile * p.outs), each,
               p.splits, values[k]);
    if (own > last) continue;
    Pack<T> sum;
    for (int i = 0; i < kCount; ++i) {
      // Rounded like the result of a separate layer.
      const T product = store_value<T>(values[k][i] + load_value(bias.values[i]));
      sum.values[i] = store_value<T>(load_value(product) + load_value(residual.values[i]));
      values[k][i] = load_value(sum.values[i]);
      squares += values[k][i] * values[k][i];
    }
    store128(static_cast<T*>(p.sum) + start + out, sum);
  }
  squares = block_sum<kWave, kFewNormThreads>(squares, slots);
  const float scale = 1.0f / sqrt(squares / static_cast<float>(p.dim) + p.eps);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const i32 own = k * kFewNormThreads + static_cast<i32>(thread_x());
    if (own > last) break;
    Pack<T> y;
    for (int i = 0; i < kCount; ++i) {
      y.values[i] = store_value<T>(values[k][i] * scale * load_value(weights[k].values[i]));
    }
    store128(static_cast<T*>(p.y) + start + own * kCount, y);
  }
}

RB_KERNEL(few_sum_f32, kFewSumThreads, FewRowsParams, few_sum<float>(p))
RB_KERNEL(few_sum_f16, kFewSumThreads, FewRowsParams, few_sum<f16>(p))
RB_KERNEL(few_sum_bf16, kFewSumThreads, FewRowsParams, few_sum<bf16>(p))

#define RB_NORM(lanes, wave, dtype, T)                                    \
  RB_KERNEL(few_norm_##dtype##_p1_##wave, kFewNormThreads, FewNormParams, \
            (few_norm<T, lanes, 1>(p)))                                   \
  RB_KERNEL(few_norm_##dtype##_p4_##wave, kFewNormThreads, FewNormParams, \
            (few_norm<T, lanes, 4>(p)))
#define RB_NORM_WAVE(dtype, T) RB_WAVES(RB_NORM, dtype, T)
RB_EACH_FLOAT(RB_NORM_WAVE)

}  // namespace gpu
}  // namespace rbee
