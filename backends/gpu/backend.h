#pragma once
// The devices of one vendor. Opens the driver at the first request, and a device at its first use.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/api/registry.h"
#include "backends/gpu/gpu_device.h"

namespace rbee::gpu {

class Backend {
 public:
  // `open` throws what the vendor's Driver throws.
  Backend(std::unique_ptr<Driver> (*open)(), std::span<const KernelImage> images,
          const KernelTable& (*kernels)(const Properties&));

  int device_count();
  // Throws device with the driver's reason, not_found for an unknown ordinal, or unsupported for a
  // card without compiled kernels.
  GpuDevice& device(int ordinal);
  // As BackendInfo::offer(). Also throws unsupported if the driver does not take the kernels.
  DeviceOffer offer(int ordinal);
  // Why there is no device, in one line; empty if there is one.
  std::string unavailable_reason();
  std::string driver_version();  // empty without a driver

 private:
  void open_once();
  void require(int ordinal);  // throws if there is no such device
  void require_kernels(const Properties& properties, DeviceId id) const;
  std::unique_ptr<GpuDevice> open_device(int ordinal);

  std::unique_ptr<Driver> (*open_)();
  Vendor vendor_;
  std::mutex mutex_;  // guards everything below
  bool tried_ = false;
  std::unique_ptr<Driver> driver_;
  std::string reason_;
  std::vector<std::unique_ptr<GpuDevice>> devices_;  // by ordinal
};

}  // namespace rbee::gpu
