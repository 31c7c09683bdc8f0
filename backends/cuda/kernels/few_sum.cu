// y = bias + the partial sums that the blocks of matvec_mma_packed.h left, in their order.
#include "backends/cuda/kernels/few_tiles.h"

namespace rbee {
namespace gpu {

// A thread has kFewSumOuts neighbouring outputs of a row of x.
template <class T>
RB_DEVICE void few_sum(const FewPackedParams& p) {
  constexpr i32 kRuns = kFewOuts / kFewSumOuts;
  const i32 at = static_cast<i32>(block_x()) * kFewSumThreads + static_cast<i32>(thread_x());
  if (at >= p.tiles * p.rows * kRuns) return;
  const i32 tile = at / (p.rows * kRuns), within = at % (p.rows * kRuns);  // a row's run
  const i32 each = p.rows * kFewOuts;
  const float4* from = reinterpret_cast<const float4*>(
      p.partials + static_cast<i64>(tile) * p.splits * each + within * kFewSumOuts);
  float4 sum = *from;
  for (i32 split = 1; split < p.splits; ++split) {
    const float4 more = from[static_cast<i64>(split) * each / kFewSumOuts];
    sum.x += more.x;
    sum.y += more.y;
    sum.z += more.z;
    sum.w += more.w;
  }
  const MatvecPart part = few_part(p, static_cast<u32>(tile));
  const i64 first =
      (tile - static_cast<i64>(part.first_block)) * kFewOuts + within % kRuns * kFewSumOuts;
  const float sums[kFewSumOuts] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (int i = 0; i < kFewSumOuts; ++i) {
    const i64 out = first + i;
    if (out >= part.outs) return;
    const float bias =
        part.bias == nullptr ? 0.0f : load_value(static_cast<const T*>(part.bias)[out]);
    static_cast<T*>(part.y)[within / kRuns * part.outs + out] = store_value<T>(sums[i] + bias);
  }
}

RB_KERNEL(few_sum_f32, kFewSumThreads, FewPackedParams, few_sum<float>(p))
RB_KERNEL(few_sum_f16, kFewSumThreads, FewPackedParams, few_sum<f16>(p))
RB_KERNEL(few_sum_bf16, kFewSumThreads, FewPackedParams, few_sum<bf16>(p))

}  // namespace gpu
}  // namespace rbee
