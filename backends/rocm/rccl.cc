#include "backends/rocm/rccl.h"

namespace rbee::rocm {

constinit const gpu::CclVendor kRcclVendor{
    .name = "RCCL",
    .prefix = "nccl",
    .override_variable = "RBEE_RCCL_LIBRARY",
    .files = {"librccl.so.1", "/opt/rocm/lib/librccl.so.1", "/opt/rocm/core/lib/librccl.so.1"}};

gpu::CclLibrary& rccl_library() {
  // Never destroyed: at the end of a program the driver may be gone first.
  static auto* const opened = new gpu::CclLibrary(kRcclVendor);
  return *opened;
}

}  // namespace rbee::rocm
