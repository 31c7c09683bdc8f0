#include "backends/cuda/ops/expert_mma.h"

#include "backends/gpu/ops/expert_tensor.h"

namespace rbee::cuda {
namespace {

// As in kernels/expert_gemm.cu: four stages of 64 bytes of each row.
constexpr gpu::ExpertTile kTile{.outs = 128, .threads = 256, .shared_bytes = 4 * (64 + 128) * 64};

void run(const ExpertLinearArgs& args, Stream& stream) {
  gpu::run_expert_tensor(kTile, args, stream);
}

}  // namespace

const Impl<ExpertLinearArgs> expert_mma{"mma", gpu::refuse_expert_tensor, run};

}  // namespace rbee::cuda
