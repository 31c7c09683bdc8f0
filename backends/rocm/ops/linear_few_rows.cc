#include "backends/rocm/ops/linear_few_rows.h"

#include "backends/gpu/ops/linear_few_rows.h"
#include "backends/shared/matvec_params.h"

namespace rbee::rocm {
namespace {

// kernels/matvec_matrix.h declares the shared memory.
constexpr gpu::FewRowsKernels kKernels{
    .prefix = "matvec_matrix",
    .families = {"matvec_matrix_small_blocks", "matvec_matrix_k_blocks", "matvec_matrix_e4m3",
                 "matvec_matrix_few_bits"},
    .plain = "matvec_matrix_plain",
    .outs = shared::kFewMatrixOuts,
    .threads = shared::kFewMatrixThreads,
    .blocks = shared::kFewMatrixBlocks,
    .ring = false};

void run_packed(const LinearArgs& args, Stream& stream) {
  gpu::run_few_packed(kKernels, args, stream);
}
void run_plain(const LinearArgs& args, Stream& stream) {
  gpu::run_few_plain(kKernels, args, stream);
}

void run_packed_norm(const LinearNormArgs& args, Stream& stream) {
  gpu::run_few_packed_norm(kKernels, args, stream);
}
void run_plain_norm(const LinearNormArgs& args, Stream& stream) {
  gpu::run_few_plain_norm(kKernels, args, stream);
}

}  // namespace

const Impl<LinearArgs> linear_few_packed_mfma{"mfma_few_packed", gpu::refuse_few_packed,
                                              run_packed};
const Impl<LinearArgs> linear_few_packed_wmma{"wmma_few_packed", gpu::refuse_few_packed,
                                              run_packed};
const Impl<LinearArgs> linear_few_plain_mfma{"mfma_few", gpu::refuse_few_plain, run_plain};
const Impl<LinearArgs> linear_few_plain_wmma{"wmma_few", gpu::refuse_few_plain, run_plain};
const Impl<LinearNormArgs> linear_norm_few_packed_mfma{
    "mfma_few_packed", gpu::refuse_few_packed_norm, run_packed_norm};
const Impl<LinearNormArgs> linear_norm_few_packed_wmma{
    "wmma_few_packed", gpu::refuse_few_packed_norm, run_packed_norm};
const Impl<LinearNormArgs> linear_norm_few_plain_mfma{"mfma_few", gpu::refuse_few_plain_norm,
                                                      run_plain_norm};
const Impl<LinearNormArgs> linear_norm_few_plain_wmma{"wmma_few", gpu::refuse_few_plain_norm,
                                                      run_plain_norm};

}  // namespace rbee::rocm
