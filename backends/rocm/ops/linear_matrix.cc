#include "backends/rocm/ops/linear_matrix.h"

#include "backends/gpu/ops/tensor_linear.h"

namespace rbee::rocm {
namespace {

// As in kernels/gemm_tiles.h, whose shared memory is declared there.
constexpr gpu::TensorTiles kTiles{
    .family = "gemm",
    .large = {.name = "large", .rows = 128, .outs = 128, .threads = 256, .shared_bytes = 0},
    .small = {.name = "small", .rows = 64, .outs = 64, .threads = 128, .shared_bytes = 0}};

void run(const LinearArgs& args, Stream& stream) {
  gpu::run_tensor_linear(kTiles, args, stream);
}

}  // namespace

const Impl<LinearArgs> linear_mfma{"mfma", gpu::refuse_tensor_linear, run};
const Impl<LinearArgs> linear_wmma{"wmma", gpu::refuse_tensor_linear, run};
const Impl<LinearArgs> linear_dot{"dot", gpu::refuse_tensor_linear, run};

}  // namespace rbee::rocm
