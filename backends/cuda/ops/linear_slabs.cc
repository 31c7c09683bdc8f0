#include "backends/cuda/ops/linear_slabs.h"

#include "backends/cuda/cublaslt.h"
#include "backends/cuda/ops/linear_mma.h"
#include "backends/cuda/ops/linear_tma.h"
#include "backends/cuda/ops/linear_wgmma.h"
#include "backends/gpu/ops/linear_slabs.h"
#include "backends/gpu/slot.h"

namespace rbee::cuda {
namespace {

void run_mma(const LinearArgs& args, Stream& stream) {
  gpu::run_linear_slabs({.library = &cublaslt_library(), .kernels = gpu::slot<linear_mma>()}, args,
                        stream);
}
void run_wgmma(const LinearArgs& args, Stream& stream) {
  gpu::run_linear_slabs(
      {.library = &cublaslt_library(), .kernels = gpu::slot<linear_tma, linear_wgmma>()}, args,
      stream);
}

}  // namespace

const Impl<LinearArgs> linear_slabs_mma{"slabs", gpu::refuse_linear_slabs, run_mma};
const Impl<LinearArgs> linear_slabs_wgmma{"slabs", gpu::refuse_linear_slabs, run_wgmma};

}  // namespace rbee::cuda
