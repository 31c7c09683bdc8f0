#pragma once
// The devices of this program. It registers one BackendInfo for each backend that it may use: a
// worker the CPU and its own, the commands of `rbee` all that were built.

#include <memory>
#include <span>
#include <string>

#include "backends/api/device.h"
#include "backends/api/group_comm.h"

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
  // What one rank makes and all ranks of a group of these devices need to meet, as bytes. Throws
  // unsupported, naming the missing library, and device. Null: these devices have no groups.
  std::string (*make_group_id)() = nullptr;
  // Waits until all ranks have come, each with a device of its own. The device outlives the result.
  // Throws as make_group_id(), and invalid_argument.
  std::unique_ptr<GroupComm> (*join_group)(Device& device, const GroupEntry& entry) = nullptr;
  // Of the library that does both, e.g. "NCCL 2.28.9"; empty without one.
  std::string (*group_library)() = nullptr;
};

// Call it before other threads use devices. A second backend of a kind replaces the first.
void register_backend(const BackendInfo& backend);
std::span<const BackendInfo> backends();
// Throws not_found naming the registered kinds.
Device& get_device(DeviceId id);

}  // namespace rbee
