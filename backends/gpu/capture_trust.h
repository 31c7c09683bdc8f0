#pragma once
// Decides whether work on a device is captured and replayed (Device::supports_capture()). Unless
// the environment decides, it needs a driver without known faults and a self-test that passes.

#include <mutex>
#include <string>

namespace rbee::gpu {

class GpuDevice;

class CaptureTrust {
 public:
  // `device` outlives the object.
  explicit CaptureTrust(GpuDevice& device) : device_(device) {}

  // One line with the reason; empty if replays are trusted. Decides at the first call, on the
  // device's default stream. RBEE_GRAPHS=0 means never, =1 always; if it is unset,
  // Properties::capture_fault and self_test_capture() decide. Logs the reason once. Throws what the
  // self-test throws; then the next call decides again.
  const std::string& why_not();

 private:
  std::string refusal();

  GpuDevice& device_;
  std::once_flag decided_;
  std::string refusal_;
};

// Captures copies of rows, replays them a hundred times with indices uploaded before each replay,
// like those of a decode step, and compares the results: rows in another order, by as many kernels
// as a model's step has. Gives the fault of the replays in one line, or an empty text. Throws
// device if the same copies are wrong without capture, out_of_memory, and the error of a lost
// device.
std::string self_test_capture(GpuDevice& device);

}  // namespace rbee::gpu
