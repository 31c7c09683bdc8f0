#include "backends/metal/metal_backend.h"

#include "backends/gpu/backend.h"
#include "backends/metal/metal_driver.h"
#include "backends/metal/metal_kernels.h"

namespace rbee::metal {
namespace {

gpu::Backend& backend() {
  // Never destroyed: at the end of a program the driver may be gone first.
  static auto* const instance = new gpu::Backend(
      []() -> std::unique_ptr<gpu::Driver> { return std::make_unique<MetalDriver>(); },
      metal_images(), &metal_kernels);
  return *instance;
}

}  // namespace

const BackendInfo& metal_backend() {
  static const BackendInfo info{
      .kind = DeviceKind::metal,
      .device_count = [] { return backend().device_count(); },
      .offer = [](int ordinal) { return backend().offer(ordinal); },
      .device = [](int ordinal) -> Device& { return backend().device(ordinal); },
      .unavailable_reason = [] { return backend().unavailable_reason(); },
      .driver_version = [] { return backend().driver_version(); }};
  return info;
}

}  // namespace rbee::metal
