#include "backends/gpu/loop.h"
#include "backends/gpu/ops/elementwise.h"
#include "backends/shared/elementwise_params.h"

namespace rbee::gpu {
namespace {

void run_gated(const GatedArgs& args, Stream& stream) {
  static_assert(static_cast<int>(GateOp::sigmoid) == 4, "kernels/gated.cu has this order");
  const KernelName kernel("gated", args.y.dtype);
  const int each = elements_per_thread(info(args.y.dtype).block_bytes);
  for_parts(loop_over<3>({&args.y, &args.gate, &args.up}), [&](const Loop<3>& part, int64_t) {
    const shared::BinaryParams params{.a = part.operands[1].data,
                                      .b = part.operands[2].data,
                                      .y = part.operands[0].data,
                                      .op = static_cast<uint32_t>(args.op),
                                      .space = strided(part, packs(part, each))};
    launch_loop(stream, "gated", "gated", kernel, each, params, Writes::floats);
  });
}

}  // namespace

const Impl<GatedArgs> gated{"gpu", never_refuse, run_gated};

}  // namespace rbee::gpu
