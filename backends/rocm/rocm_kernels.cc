#include "backends/rocm/rocm_kernels.h"

#include "backends/gpu/gpu_kernels.h"

namespace rbee::rocm {

const KernelTable& rocm_kernels(const gpu::Properties&) {
  static const KernelTable table = gpu::common_kernels();
  return table;
}

}  // namespace rbee::rocm
