#include "backends/gpu/loop.h"
#include "backends/gpu/ops/elementwise.h"
#include "backends/shared/elementwise_params.h"

namespace rbee::gpu {
namespace {

void run_pairs(const char* op, uint32_t number, const View& a, const View& b, const View& y,
               Stream& stream) {
  const KernelName kernel(op, a.dtype);
  const int each = elements_per_thread(info(a.dtype).block_bytes);
  for_parts(loop_over<3>({&y, &a, &b}), [&](const Loop<3>& part, int64_t) {
    launch_loop(stream, op, "binary", kernel, each,
                shared::BinaryParams{.a = part.operands[1].data,
                                     .b = part.operands[2].data,
                                     .y = part.operands[0].data,
                                     .op = number,
                                     .space = strided(part, packs(part, each))});
  });
}

void run_binary(const BinaryArgs& args, Stream& stream) {
  static_assert(static_cast<int>(BinaryOp::maximum) == 5, "kernels/binary.cu has this order");
  run_pairs("binary", static_cast<uint32_t>(args.op), args.a, args.b, args.y, stream);
}

void run_compare(const CompareArgs& args, Stream& stream) {
  static_assert(static_cast<int>(CompareOp::ge) == 5, "kernels/binary.cu has this order");
  run_pairs("compare", static_cast<uint32_t>(args.op), args.a, args.b, args.y, stream);
}

}  // namespace

const Impl<BinaryArgs> binary{"gpu", never_refuse, run_binary};
const Impl<CompareArgs> compare{"gpu", never_refuse, run_compare};

}  // namespace rbee::gpu
