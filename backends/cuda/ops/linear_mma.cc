#include "backends/cuda/ops/linear_mma.h"

#include "backends/gpu/ops/tensor_linear.h"

namespace rbee::cuda {
namespace {

// As in kernels/mma_tiles.h: four stages of 64 bytes of each row.
constexpr gpu::TensorTiles kTiles{.family = "gemm",
                                  .large = {.name = "large",
                                            .rows = 128,
                                            .outs = 128,
                                            .threads = 256,
                                            .shared_bytes = 4 * (128 + 128) * 64},
                                  .small = {.name = "small",
                                            .rows = 64,
                                            .outs = 64,
                                            .threads = 128,
                                            .shared_bytes = 4 * (64 + 64) * 64}};

void run(const LinearArgs& args, Stream& stream) {
  gpu::run_tensor_linear(kTiles, args, stream);
}

}  // namespace

const Impl<LinearArgs> linear_mma{"mma", gpu::refuse_tensor_linear, run};

}  // namespace rbee::cuda
