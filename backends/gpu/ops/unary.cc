#include "backends/gpu/loop.h"
#include "backends/gpu/ops/elementwise.h"
#include "backends/shared/elementwise_params.h"

namespace rbee::gpu {
namespace {

void run_unary(const UnaryArgs& args, Stream& stream) {
  static_assert(kUnaryOpCount == 24 && static_cast<int>(UnaryOp::tanh) == 23,
                "kernels/unary.cu has this order");
  const KernelName kernel("unary", args.x.dtype);
  const int each = elements_per_thread(info(args.x.dtype).block_bytes);
  for_parts(loop_over<2>({&args.y, &args.x}), [&](const Loop<2>& part, int64_t) {
    launch_loop(stream, "unary", "unary", kernel, each,
                shared::UnaryParams{.x = part.operands[1].data,
                                    .y = part.operands[0].data,
                                    .param = args.param,
                                    .op = static_cast<uint32_t>(args.op),
                                    .space = strided(part, packs(part, each))});
  });
}

const char* refuse_unary(const UnaryArgs& args) {
  if (is_float(args.x.dtype)) return nullptr;
  switch (args.op) {
    case UnaryOp::abs:
    case UnaryOp::neg:
    case UnaryOp::relu:
    case UnaryOp::sign:
    case UnaryOp::sqr:
      return nullptr;
    default:
      return "the function has no integer form";
  }
}

void run_affine(const AffineArgs& args, Stream& stream) {
  const KernelName kernel("affine", args.x.dtype);
  const int each = elements_per_thread(info(args.x.dtype).block_bytes);
  for_parts(loop_over<2>({&args.y, &args.x}), [&](const Loop<2>& part, int64_t) {
    launch_loop(stream, "affine", "unary", kernel, each,
                shared::AffineParams{.x = part.operands[1].data,
                                     .y = part.operands[0].data,
                                     .mul = args.mul,
                                     .add = args.add,
                                     .space = strided(part, packs(part, each))});
  });
}

}  // namespace

const Impl<UnaryArgs> unary{"gpu", refuse_unary, run_unary};
const Impl<AffineArgs> affine{"gpu", never_refuse, run_affine};

}  // namespace rbee::gpu
