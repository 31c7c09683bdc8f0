#include "backends/rocm/ops/linear_matrix.h"

#include "backends/gpu/ops/linear_slabs.h"
#include "backends/gpu/ops/tensor_linear.h"
#include "backends/gpu/ops/tensor_matmul.h"
#include "backends/gpu/slot.h"
#include "backends/rocm/hipblaslt.h"

namespace rbee::rocm {
namespace {

// As in kernels/gemm_matrix.h; the steps' code declares shared memory.
constexpr gpu::TensorTiles kTiles = gpu::square_tiles("gemm", 0);

void run(const LinearArgs& args, Stream& stream) {
  gpu::run_tensor_linear(kTiles, args, stream);
}

void run_matmul(const MatmulArgs& args, Stream& stream) {
  gpu::run_tensor_matmul(kTiles, args, stream);
}

void run_slabs(const LinearArgs& args, Stream& stream) {
  gpu::run_linear_slabs({.library = &hipblaslt_library(), .kernels = gpu::slot<linear_mfma>()},
                        args, stream);
}

// hipBLASLt supports none of these targets.
void run_slabs_dot(const LinearArgs& args, Stream& stream) {
  gpu::run_linear_slabs({.library = nullptr, .kernels = gpu::slot<linear_dot>()}, args, stream);
}

}  // namespace

const Impl<LinearArgs> linear_mfma{"mfma", gpu::refuse_tensor_linear, run};
const Impl<LinearArgs> linear_wmma{"wmma", gpu::refuse_tensor_linear, run};
const Impl<LinearArgs> linear_dot{"dot", gpu::refuse_tensor_linear, run};
const Impl<MatmulArgs> matmul_mfma{"mfma", gpu::refuse_tensor_matmul, run_matmul};
const Impl<MatmulArgs> matmul_wmma{"wmma", gpu::refuse_tensor_matmul, run_matmul};
const Impl<MatmulArgs> matmul_dot{"dot", gpu::refuse_tensor_matmul, run_matmul};
const Impl<LinearArgs> linear_slabs{"slabs", gpu::refuse_linear_slabs, run_slabs};
const Impl<LinearArgs> linear_slabs_dot{"slabs", gpu::refuse_linear_slabs, run_slabs_dot};

}  // namespace rbee::rocm
