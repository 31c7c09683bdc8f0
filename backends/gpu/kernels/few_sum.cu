// y = bias + the partial sums that the blocks of few rows left (FewRowsParams), in their order.
#include "backends/gpu/kernels/few_parts.h"

namespace rbee {
namespace gpu {

// A thread has kFewSumOuts neighbouring outputs of a row of x.
template <class T>
RB_DEVICE void few_sum(const FewRowsParams& p) {
  static_assert(Pack<float>::kCount == kFewSumOuts, "a load of each part");
  const i32 runs = p.outs / kFewSumOuts;
  const i32 at = static_cast<i32>(block_x()) * kFewSumThreads + static_cast<i32>(thread_x());
  if (at >= p.tiles * p.rows * runs) return;
  const i32 tile = at / (p.rows * runs), within = at % (p.rows * runs);  // a row's run
  const i64 each = p.rows * p.outs;
  const float* from = p.partials + tile * each * p.splits + within * kFewSumOuts;
  Pack<float> sum = load128(from);
  for (i32 split = 1; split < p.splits; ++split) {
    const Pack<float> more = load128(from + split * each);
#pragma unroll
    for (int i = 0; i < kFewSumOuts; ++i) sum.values[i] += more.values[i];
  }
  const MatvecPart part = few_part(p, static_cast<u32>(tile));
  const i64 first =
      (tile - static_cast<i64>(part.first_block)) * p.outs + within % runs * kFewSumOuts;
#pragma unroll
  for (int i = 0; i < kFewSumOuts; ++i) {
    const i64 out = first + i;
    if (out >= part.outs) return;
    const float bias =
        part.bias == nullptr ? 0.0f : load_value(static_cast<const T*>(part.bias)[out]);
    static_cast<T*>(part.y)[within / runs * part.outs + out] = store_value<T>(sum.values[i] + bias);
  }
}

RB_KERNEL(few_sum_f32, kFewSumThreads, FewRowsParams, few_sum<float>(p))
RB_KERNEL(few_sum_f16, kFewSumThreads, FewRowsParams, few_sum<f16>(p))
RB_KERNEL(few_sum_bf16, kFewSumThreads, FewRowsParams, few_sum<bf16>(p))

}  // namespace gpu
}  // namespace rbee
