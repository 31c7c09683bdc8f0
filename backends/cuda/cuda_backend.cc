#include "backends/cuda/cuda_backend.h"

#include "backends/cuda/cuda_driver.h"
#include "backends/cuda/cuda_kernels.h"
#include "backends/cuda/nccl.h"
#include "backends/gpu/backend.h"
#include "backends/gpu/ccl_group.h"

namespace rbee::cuda {
namespace {

gpu::Backend& backend() {
  // Never destroyed: at the end of a program the driver may be gone first.
  static auto* const instance = new gpu::Backend(
      []() -> std::unique_ptr<gpu::Driver> { return std::make_unique<CudaDriver>(); },
      cuda_images(), &cuda_kernels);
  return *instance;
}

}  // namespace

const BackendInfo& cuda_backend() {
  static const BackendInfo info{
      .kind = DeviceKind::cuda,
      .device_count = [] { return backend().device_count(); },
      .offer = [](int ordinal) { return backend().offer(ordinal); },
      .device = [](int ordinal) -> Device& { return backend().device(ordinal); },
      .unavailable_reason = [] { return backend().unavailable_reason(); },
      .driver_version = [] { return backend().driver_version(); },
      .make_group_id = [] { return gpu::make_group_id(nccl_library()); },
      .join_group = [](Device& device, const GroupEntry& entry) -> std::unique_ptr<GroupComm> {
        return std::make_unique<gpu::CclGroup>(nccl_library(),
                                               dynamic_cast<gpu::GpuDevice&>(device), entry);
      },
      .group_library = [] { return nccl_library().version(); }};
  return info;
}

}  // namespace rbee::cuda
