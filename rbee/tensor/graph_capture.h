#pragma once
// Work of one device, captured once (a CUDA or HIP graph) and replayed as a whole: no host work
// between its kernels.

#include <functional>

#include "rbee/tensor/tensor.h"

namespace rbee {

// The captured kernels read and write fixed addresses: write inputs in place before a replay, and
// read results where they were while capturing. If tensors that the work made are used after
// replays, destroy them before the capture.
class GraphCapture {
 public:
  GraphCapture() = default;
  // Captures what `work` queues on the device's default stream, without running it. The work must
  // not wait for the device or read from it. Throws what `work` throws, device, and unsupported if
  // the device cannot capture.
  GraphCapture(Device& device, const std::function<void()>& work);
  ~GraphCapture();
  GraphCapture(GraphCapture&& other) noexcept;
  GraphCapture& operator=(GraphCapture&& other) noexcept;

  static bool supported(const Device& device) { return device.supports_capture(); }
  explicit operator bool() const { return captured_ != nullptr; }
  // Queues the captured work.
  void replay() const;

 private:
  Device* device_ = nullptr;
  void* captured_ = nullptr;
};

}  // namespace rbee
