#include "backends/linked/linked_backends.h"

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#ifdef RBEE_HAS_CUDA
#include "backends/cuda/cuda_backend.h"
#endif
#ifdef RBEE_HAS_ROCM
#include "backends/rocm/rocm_backend.h"
#endif

namespace rbee {

void register_linked_backends() {
  register_backend(cpu::cpu_backend());
#ifdef RBEE_HAS_CUDA
  register_backend(cuda::cuda_backend());
#endif
#ifdef RBEE_HAS_ROCM
  register_backend(rocm::rocm_backend());
#endif
}

}  // namespace rbee
