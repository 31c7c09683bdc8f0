#include "backends/cuda/ops/linear_mma.h"

#include "backends/gpu/ops/tensor_linear.h"
#include "backends/gpu/ops/tensor_matmul.h"

namespace rbee::cuda {
namespace {

// As in kernels/mma_tiles.h: four stages of 64 bytes of each row.
constexpr gpu::TensorTiles kTiles = gpu::square_tiles("gemm", 4 * 64);

void run(const LinearArgs& args, Stream& stream) {
  gpu::run_tensor_linear(kTiles, args, stream);
}

void run_matmul(const MatmulArgs& args, Stream& stream) {
  gpu::run_tensor_matmul(kTiles, args, stream);
}

}  // namespace

const Impl<LinearArgs> linear_mma{"mma", gpu::refuse_tensor_linear, run};
const Impl<MatmulArgs> matmul_mma{"mma", gpu::refuse_tensor_matmul, run_matmul};

}  // namespace rbee::cuda
