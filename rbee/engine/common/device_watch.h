#pragma once
// A device's memory, for figures: who asks finds out, too, that the device was lost while no
// request needed it.

#include <atomic>

#include "backends/api/device.h"

namespace rbee::engine {

// Thread-safe. The device outlives it.
class DeviceWatch {
 public:
  // Asks for the memory once: the device is there by now.
  explicit DeviceWatch(const Device& device) : device_(device) { memory(); }

  // Nothing of a lost device, nor of a CPU, whose memory is the machine's.
  MemoryInfo memory() const;
  // Whether a device error answered memory(), which had told it before; it is not asked again.
  bool lost() const { return lost_; }

 private:
  const Device& device_;
  mutable std::atomic<bool> told_ = false;  // some drivers cannot
  mutable std::atomic<bool> lost_ = false;
};

}  // namespace rbee::engine
