#include "backends/cuda/nccl.h"

namespace rbee::cuda {

constinit const gpu::CclVendor kNcclVendor{.name = "NCCL",
                                           .prefix = "nccl",
                                           .override_variable = "RBEE_NCCL_LIBRARY",
                                           .files = {"libnccl.so.2"}};

gpu::CclLibrary& nccl_library() {
  // Never destroyed: at the end of a program the driver may be gone first.
  static auto* const opened = new gpu::CclLibrary(kNcclVendor);
  return *opened;
}

}  // namespace rbee::cuda
