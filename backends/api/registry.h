#pragma once
// The devices of this program. It registers one BackendInfo for each backend that it may use: a
// worker the CPU and its own, the commands of `rbee` all that were built.

#include <span>
#include <string>

#include "backends/api/device.h"

namespace rbee {

// What a device has, before it is opened for work.
struct DeviceOffer {
  std::string name;          // e.g. "NVIDIA H200"
  std::string architecture;  // what its kernels are compiled for, e.g. "sm_90", "gfx942"
  MemoryInfo memory;
  bool integrated = false;  // a GPU inside a processor, whose memory is the host's
};

struct BackendInfo {
  DeviceKind kind;
  int (*device_count)();
  // Asks the device and gives back what asking took of it. Throws as device() does.
  DeviceOffer (*offer)(int ordinal);
  // The device lives until the program ends. Throws not_found if there is no such ordinal, and
  // device, naming the missing driver, if the backend cannot start.
  Device& (*device)(int ordinal);
  // One line saying why there is no device; empty if there is one.
  std::string (*unavailable_reason)();
  // Of the driver, e.g. "HIP runtime 6.4"; empty without one.
  std::string (*driver_version)();
};

// Call it before other threads use devices. A second backend of a kind replaces the first.
void register_backend(const BackendInfo& backend);
std::span<const BackendInfo> backends();
// Throws not_found naming the registered kinds.
Device& get_device(DeviceId id);

}  // namespace rbee
