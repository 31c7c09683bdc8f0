#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/reduce.h"
#include "backends/gpu/rows.h"
#include "backends/shared/softmax_params.h"

namespace rbee::gpu {
namespace {

constexpr uint32_t kThreads = 256;  // as in kernels/softmax.cu
constexpr int kPerLane = 16;

void run_rows(const SoftmaxArgs& args, Stream& stream) {
  const shared::SoftmaxParams params{.x = args.x.data,
                                     .y = args.y.data,
                                     .rows = row_count(args.x),
                                     .dim = args.x.size(-1),
                                     .x_rows = rows_of(args.x),
                                     .y_rows = rows_of(args.y)};
  if (params.rows == 0 || params.dim == 0) return;
  const int lanes = device_of(stream).properties().lane_count;
  const bool fits = params.dim <= int64_t{kPerLane} * lanes;
  KernelName kernel(fits ? "softmax_wave" : "softmax_block", args.x.dtype);
  kernel.lanes(lanes);
  launch(stream,
         {.op = "softmax",
          .family = "softmax",
          .kernel = kernel,
          .grid = {.x = blocks_for(params.rows, fits ? kThreads / lanes : 1)},
          .threads = kThreads},
         params);
}

void run_softmax(const SoftmaxArgs& args, Stream& stream) {
  for_row_parts(args, {&SoftmaxArgs::x, &SoftmaxArgs::y}, kMostRows,
                [&](const SoftmaxArgs& part) { run_rows(part, stream); });
}

}  // namespace

const Impl<SoftmaxArgs> softmax{"gpu", never_refuse, run_softmax};

}  // namespace rbee::gpu
