#include "backends/rocm/rocm_backend.h"

#include "backends/gpu/backend.h"
#include "backends/gpu/ccl_group.h"
#include "backends/rocm/hip_driver.h"
#include "backends/rocm/rccl.h"
#include "backends/rocm/rocm_kernels.h"

namespace rbee::rocm {
namespace {

gpu::Backend& backend() {
  // Never destroyed: at the end of a program the driver may be gone first.
  static auto* const instance = new gpu::Backend(
      []() -> std::unique_ptr<gpu::Driver> { return std::make_unique<HipDriver>(); }, rocm_images(),
      &rocm_kernels);
  return *instance;
}

}  // namespace

const BackendInfo& rocm_backend() {
  static const BackendInfo info{
      .kind = DeviceKind::rocm,
      .device_count = [] { return backend().device_count(); },
      .offer = [](int ordinal) { return backend().offer(ordinal); },
      .device = [](int ordinal) -> Device& { return backend().device(ordinal); },
      .unavailable_reason = [] { return backend().unavailable_reason(); },
      .driver_version = [] { return backend().driver_version(); },
      .make_group_id = [] { return gpu::make_group_id(rccl_library()); },
      .join_group = [](Device& device, const GroupEntry& entry) -> std::unique_ptr<GroupComm> {
        return std::make_unique<gpu::CclGroup>(rccl_library(),
                                               dynamic_cast<gpu::GpuDevice&>(device), entry);
      },
      .group_library = [] { return rccl_library().version(); }};
  return info;
}

}  // namespace rbee::rocm
