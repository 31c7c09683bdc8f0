#pragma once
// Reads a device's memory for statistics. This also detects a lost device while no request uses it.

#include <atomic>

#include "backends/api/device.h"

namespace rbee::engine {

// Thread-safe. The device outlives it.
class DeviceWatch {
 public:
  // Reads the memory once, so that a device lost later is noticed.
  explicit DeviceWatch(const Device& device) : device_(device) { memory(); }

  // Zeros for a lost device, and for a CPU, whose memory is the machine's.
  MemoryInfo memory() const;
  // Whether memory() met a device error after an earlier success; the device is then not read
  // again.
  bool lost() const { return lost_; }

 private:
  const Device& device_;
  mutable std::atomic<bool> memory_worked_ = false;  // some drivers cannot
  mutable std::atomic<bool> lost_ = false;
};

}  // namespace rbee::engine
