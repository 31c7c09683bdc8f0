#include "backends/gpu/ops/pack_weight.h"

#include <algorithm>

#include "backends/api/dispatch_blocks.h"
#include "backends/gpu/gpu_device.h"
#include "backends/shared/matvec_params.h"
#include "backends/shared/packed_weight.h"

namespace rbee::gpu {
namespace {

constexpr int64_t kThreads = 256;  // as in kernels/pack_weight.cu
constexpr int64_t kMostBlocks = 1 << 20;

void run(const PackWeightArgs& args, Stream& stream) {
  const View& weight = args.weight;
  const shared::PackParams params{.blocks = weight.data,
                                  .packed = args.packed.data,
                                  .rows = weight.size(0),
                                  .in = weight.size(1)};
  const int64_t groups = params.rows * (params.in / 32);
  launch(stream,
         {.op = "pack_weight",
          .family = "pack_weight",
          .kernel = KernelName("pack_weight", weight.dtype),
          .grid = {.x = blocks_for(std::min(groups, kMostBlocks * kThreads), kThreads)},
          .threads = kThreads,
          .writes = Writes::packed_weights},
         params);
}

}  // namespace

PackingPlan plan_packing(const View& weight) {
  if (!is_quantized(weight.dtype) || weight.numel() == 0) return {};
  PackingPlan plan{.packing = kPlanesPacking, .alignment = 16, .unit_rows = 1};
  dispatch_blocks("pack_weight", weight.dtype, [&]<typename Block>() {
    plan.bytes = weight.size(0) * shared::packed_layout<Block>(weight.size(1)).row_bytes;
  });
  return plan;
}

const Impl<PackWeightArgs> pack_weight{"gpu", never_refuse, run};

}  // namespace rbee::gpu
