#include "backends/cuda/ops/linear_few_packed.h"

#include "backends/gpu/ops/linear_few_rows.h"
#include "backends/shared/matvec_params.h"

namespace rbee::cuda {
namespace {

constexpr gpu::FewRowsKernels kKernels{
    .prefix = "matvec_mma",
    .families = {"matvec_mma_small_blocks", "matvec_mma_k_blocks", "matvec_mma_e4m3",
                 "matvec_mma_few_bits"},
    .plain = nullptr,
    .outs = shared::kFewOuts,
    .threads = shared::kFewThreads,
    .blocks = shared::kFewBlocks,
    .ring = true};

void run(const LinearArgs& args, Stream& stream) {
  gpu::run_few_packed(kKernels, args, stream);
}

void run_norm(const LinearNormArgs& args, Stream& stream) {
  gpu::run_few_packed_norm(kKernels, args, stream);
}

const char* refuse_fewer_norm(const LinearNormArgs& args) {
  constexpr int64_t kMostRows = 32;
  if (args.x.size(0) > kMostRows) return "takes 5 to 32 rows";
  return gpu::refuse_few_packed_norm(args);
}

}  // namespace

const Impl<LinearArgs> linear_few_packed{"mma_few_packed", gpu::refuse_few_packed, run};
const Impl<LinearNormArgs> linear_norm_few_packed{"mma_few_packed", gpu::refuse_few_packed_norm,
                                                  run_norm};
const Impl<LinearNormArgs> linear_norm_fewer_packed{"mma_few_packed", refuse_fewer_norm, run_norm};

}  // namespace rbee::cuda
