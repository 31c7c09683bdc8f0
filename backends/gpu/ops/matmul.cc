#include "backends/gpu/ops/matmul.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/product_tiles.h"

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
  launch(stream,
         {.op = "matmul",
          .family = "gemm_plain",
          .kernel = KernelName("matmul", args.y.dtype),
          .grid = {.x = grid_for_tiles(tiles * matrices_of(args))},
          .threads = kProductThreads},
         matmul_params(args));
}

}  // namespace

shared::MatmulParams matmul_params(const MatmulArgs& args) {
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
  const int axes = args.y.rank - 2;
  std::copy_n(args.y.sizes, axes, params.batch_sizes + shared::kProductBatchAxes - axes);
  set_batch(args.a, params.a_batch);
  set_batch(args.b, params.b_batch);
  set_batch(args.y, params.y_batch);
  return params;
}

int64_t matrices_of(const MatmulArgs& args) {
  int64_t out = 1;
  for (int axis = 0; axis < args.y.rank - 2; ++axis) out *= args.y.sizes[axis];
  return out;
}

const Impl<MatmulArgs> matmul{"gpu", never_refuse, run_matmul};

}  // namespace rbee::gpu
