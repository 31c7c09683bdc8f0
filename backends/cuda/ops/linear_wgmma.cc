#include "backends/cuda/ops/linear_wgmma.h"

#include "backends/gpu/ops/tensor_linear.h"
#include "backends/gpu/ops/tensor_matmul.h"

namespace rbee::cuda {
namespace {

// As in kernels/gemm_wgmma.cu: four stages of 128 bytes of each row, and room to align them.
constexpr uint32_t shared_bytes(uint32_t rows) {
  return 4 * rows * 128 + 1024;
}
constexpr gpu::TensorTiles kTiles{.family = "gemm_wgmma",
                                  .large = {.name = "wide",
                                            .rows = 128,
                                            .outs = 256,
                                            .threads = 256,
                                            .shared_bytes = shared_bytes(128 + 256)},
                                  .small = {.name = "square",
                                            .rows = 128,
                                            .outs = 128,
                                            .threads = 256,
                                            .shared_bytes = shared_bytes(128 + 128)}};

void run(const LinearArgs& args, Stream& stream) {
  gpu::run_tensor_linear(kTiles, args, stream);
}

void run_matmul(const MatmulArgs& args, Stream& stream) {
  gpu::run_tensor_matmul(kTiles, args, stream);
}

}  // namespace

const Impl<LinearArgs> linear_wgmma{"wgmma", gpu::refuse_tensor_linear, run};
const Impl<MatmulArgs> matmul_wgmma{"wgmma", gpu::refuse_tensor_matmul, run_matmul};

}  // namespace rbee::cuda
