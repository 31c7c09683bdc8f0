#include "backends/linked/linked_backends.h"

#include "backends/cpu/cpu_backend.h"
#ifdef RBEE_HAS_CUDA
#include "backends/cuda/cuda_backend.h"
#endif
#ifdef RBEE_HAS_METAL
#include "backends/metal/metal_backend.h"
#endif
#ifdef RBEE_HAS_ROCM
#include "backends/rocm/rocm_backend.h"
#endif

namespace rbee {

std::vector<const BackendInfo*> linked_backends() {
  return {
      &cpu::cpu_backend(),
#ifdef RBEE_HAS_CUDA
      &cuda::cuda_backend(),
#endif
#ifdef RBEE_HAS_ROCM
      &rocm::rocm_backend(),
#endif
#ifdef RBEE_HAS_METAL
      &metal::metal_backend(),
#endif
  };
}

void register_linked_backends() {
  for (const BackendInfo* backend : linked_backends()) register_backend(*backend);
}

}  // namespace rbee
