#include "backends/rocm/ops/expert_matrix.h"

#include "backends/gpu/ops/expert_tensor.h"

namespace rbee::rocm {
namespace {

// As in kernels/expert_gemm.cu, whose shared memory is declared there.
constexpr gpu::ExpertTile kTile{.outs = 64, .threads = 128, .shared_bytes = 0};

void run(const ExpertLinearArgs& args, Stream& stream) {
  gpu::run_expert_tensor(kTile, args, stream);
}

}  // namespace

const Impl<ExpertLinearArgs> expert_mfma{"mfma", gpu::refuse_expert_tensor, run};
const Impl<ExpertLinearArgs> expert_wmma{"wmma", gpu::refuse_expert_tensor, run};
const Impl<ExpertLinearArgs> expert_dot{"dot", gpu::refuse_expert_tensor, run};

}  // namespace rbee::rocm
