#include "backends/rocm/ops/expert_matrix.h"

#include "backends/gpu/ops/expert_tensor.h"
#include "backends/shared/matvec_params.h"

namespace rbee::rocm {
namespace {

// As in kernels/expert_gemm.cu, which declares its shared memory itself.
constexpr gpu::ExpertTile kTile{.outs = 64, .threads = 128, .shared_bytes = 0};

// As in kernels/expert_few.h.
constexpr gpu::ExpertFewKernels kFewKernels{
    .prefix = "expert_few",
    .families = {"expert_few_small_blocks", "expert_few_k_blocks", "expert_few_e4m3",
                 "expert_few_few_bits"},
    .plain = "expert_few_plain"};
constexpr gpu::ExpertTile kFewTile{.outs = shared::kFewMatrixOuts,
                                   .threads = shared::kFewMatrixThreads,
                                   .shared_bytes = 0,
                                   .few = &kFewKernels};

void run(const ExpertLinearArgs& args, Stream& stream) {
  gpu::run_expert_tensor(kTile, args, stream);
}
void run_few(const ExpertLinearArgs& args, Stream& stream) {
  gpu::run_expert_tensor(kFewTile, args, stream);
}

}  // namespace

const Impl<ExpertLinearArgs> expert_few_mfma{"mfma_few", gpu::refuse_expert_few, run_few};
const Impl<ExpertLinearArgs> expert_few_wmma{"wmma_few", gpu::refuse_expert_few, run_few};
const Impl<ExpertLinearArgs> expert_mfma{"mfma", gpu::refuse_expert_tensor, run};
const Impl<ExpertLinearArgs> expert_wmma{"wmma", gpu::refuse_expert_tensor, run};
const Impl<ExpertLinearArgs> expert_dot{"dot", gpu::refuse_expert_tensor, run};

}  // namespace rbee::rocm
