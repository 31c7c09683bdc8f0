#pragma once
// The devices of this program. A backend enters through one BackendInfo that main registers; the
// CPU is always linked, and each executable links one accelerator at most.

#include <span>
#include <string>

#include "backends/api/device.h"

namespace rbee {

struct BackendInfo {
  DeviceKind kind;
  int (*device_count)();
  // The device lives until the program ends. Throws not_found when there is no such ordinal, and
  // device with the missing driver's name when the backend cannot start.
  Device& (*device)(int ordinal);
  // One line saying why there is no device; empty when there is one.
  std::string (*unavailable_reason)();
};

// Call before other threads use devices; a kind registered twice keeps the last.
void register_backend(const BackendInfo& backend);
std::span<const BackendInfo> backends();
// Throws not_found naming the registered kinds.
Device& get_device(DeviceId id);

}  // namespace rbee
