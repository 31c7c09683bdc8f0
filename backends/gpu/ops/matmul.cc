#include "backends/gpu/ops/matmul.h"

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/product_tiles.h"
#include "backends/shared/product_params.h"

namespace rbee::gpu {
namespace {

// Strides of the batch axes, aligned to the end of the parameters' fixed number of axes.
void set_batch(const View& view, int64_t (&strides)[shared::kProductBatchAxes]) {
  const int axes = view.rank - 2;
  for (int axis = 0; axis < axes; ++axis) {
    strides[shared::kProductBatchAxes - axes + axis] = view.strides[axis];
  }
}

void run_matmul(const MatmulArgs& args, Stream& stream) {
  const int64_t tiles = product_tiles(args.y.size(-2), args.y.size(-1));
  shared::MatmulParams params{.a = args.a.data,
                              .b = args.b.data,
                              .y = args.y.data,
                              .rows = args.y.size(-2),
                              .columns = args.y.size(-1),
                              .depth = args.a.size(-1),
                              .a_row = args.a.stride(-2),
                              .a_step = args.a.stride(-1),
                              .b_step = args.b.stride(-2),
                              .b_column = args.b.stride(-1),
                              .y_row = args.y.stride(-2),
                              .y_column = args.y.stride(-1),
                              .batch_sizes = {1, 1, 1},
                              .a_batch = {},
                              .b_batch = {},
                              .y_batch = {}};
  int64_t matrices = 1;
  for (int axis = 0; axis < args.y.rank - 2; ++axis) {
    params.batch_sizes[shared::kProductBatchAxes - (args.y.rank - 2) + axis] = args.y.sizes[axis];
    matrices *= args.y.sizes[axis];
  }
  set_batch(args.a, params.a_batch);
  set_batch(args.b, params.b_batch);
  set_batch(args.y, params.y_batch);
  launch(stream,
         {.op = "matmul",
          .family = "gemm_plain",
          .kernel = KernelName("matmul", args.y.dtype),
          .grid = {.x = grid_for_tiles(tiles * matrices)},
          .threads = kProductThreads},
         params);
}

}  // namespace

const Impl<MatmulArgs> matmul{"gpu", never_refuse, run_matmul};

}  // namespace rbee::gpu
