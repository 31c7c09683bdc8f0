#include "backends/gpu/ops/linear.h"

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/gpu/product_tiles.h"
#include "backends/shared/product_params.h"

namespace rbee::gpu {
namespace {

void run_part(const View& x, const LinearPart& part, Stream& stream) {
  const shared::LinearParams params{.x = x.data,
                                    .weight = part.weight.data,
                                    .bias = part.bias.data,
                                    .y = part.y.data,
                                    .rows = x.size(0),
                                    .outs = part.weight.size(0),
                                    .depth = x.size(1),
                                    .y_row = part.y.stride(0)};
  const bool packed = part.weight.packing != 0;
  launch(
      stream,
      {.op = "linear",
       .family = has_few_bits(part.weight.dtype) ? "linear_few_bits"
                 : packed                        ? "linear_packed"
                                                 : "linear_plain",
       .kernel = KernelName(packed ? "linear_packed" : "linear", x.dtype, name(part.weight.dtype)),
       .grid = {.x = grid_for_tiles(product_tiles(params.rows, params.outs))},
       .threads = kProductThreads},
      params);
}

void run_linear(const LinearArgs& args, Stream& stream) {
  for (const LinearPart& part : args.parts) run_part(args.x, part, stream);
}

}  // namespace

const Impl<LinearArgs> linear{"gpu", never_refuse, run_linear};

}  // namespace rbee::gpu
