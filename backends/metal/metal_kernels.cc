#include "backends/metal/metal_kernels.h"

#include "backends/gpu/gpu_kernels.h"

namespace rbee::metal {

const KernelTable& metal_kernels(const gpu::Properties&) {
  static const KernelTable common = gpu::common_kernels();
  return common;
}

}  // namespace rbee::metal
