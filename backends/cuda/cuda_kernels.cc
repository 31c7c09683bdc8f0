#include "backends/cuda/cuda_kernels.h"

#include "backends/gpu/gpu_kernels.h"

namespace rbee::cuda {

const KernelTable& cuda_kernels(const gpu::Properties&) {
  static const KernelTable table = gpu::common_kernels();
  return table;
}

}  // namespace rbee::cuda
