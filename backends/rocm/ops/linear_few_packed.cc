#include "backends/rocm/ops/linear_few_packed.h"

#include "backends/gpu/ops/linear_few_packed.h"
#include "backends/shared/matvec_params.h"

namespace rbee::rocm {
namespace {

// Shared memory is declared in kernels/matvec_matrix.h.
constexpr gpu::FewPackedKernels kKernels{
    .prefix = "matvec_matrix",
    .families = {"matvec_matrix_small_blocks", "matvec_matrix_k_blocks", "matvec_matrix_e4m3"},
    .outs = shared::kFewMatrixOuts,
    .threads = shared::kFewMatrixThreads,
    .blocks = shared::kFewMatrixBlocks,
    .ring = false};

void run(const LinearArgs& args, Stream& stream) {
  gpu::run_few_packed(kKernels, args, stream);
}

}  // namespace

const Impl<LinearArgs> linear_few_mfma{"mfma_few_packed", gpu::refuse_few_packed, run};
const Impl<LinearArgs> linear_few_wmma{"wmma_few_packed", gpu::refuse_few_packed, run};

}  // namespace rbee::rocm
