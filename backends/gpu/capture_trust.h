#pragma once
// Whether work on a device is recorded and replayed (Device::supports_capture()): where the
// environment does not say, where nothing is known against the driver, and a self-test agrees.

#include <mutex>
#include <string>

namespace rbee::gpu {

class GpuDevice;

class CaptureTrust {
 public:
  // `device` outlives the object.
  explicit CaptureTrust(GpuDevice& device) : device_(device) {}

  // One line; empty where replays are trusted. Decided at the first call, on the device's default
  // stream. RBEE_GRAPHS=0 is never, =1 always; unset, Properties::capture_fault and
  // self_test_capture() decide. Logs why not, once. Throws what the self-test throws, and then
  // decides anew at the next call.
  const std::string& why_not();

 private:
  std::string refusal();

  GpuDevice& device_;
  std::once_flag decided_;
  std::string refusal_;
};

// Records copies of rows whose bytes are uploaded before each of a hundred replays, as the indices
// of a step are, and compares what comes out: rows in another order, by as many kernels as a step
// of a model has. What is wrong with the replays, one line; empty: nothing. Throws device where the
// same copies are wrong without a recording, out_of_memory, and what a lost device gives.
std::string self_test_capture(GpuDevice& device);

}  // namespace rbee::gpu
