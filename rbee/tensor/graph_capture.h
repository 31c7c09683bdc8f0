#pragma once
// Work of one device, captured once and replayed as a whole: no host work between its kernels.

#include <functional>

#include "rbee/tensor/tensor.h"

namespace rbee {

// The addresses that the captured kernels read and write are fixed: inputs are written in place
// before a replay, and results lie where they lay while capturing. Tensors that the work made and
// that are used after replays must be destroyed before the capture is.
class GraphCapture {
 public:
  GraphCapture() = default;
  // Records what `work` queues on the device's default stream, without running it. The work must
  // not wait for the device or read from it. Throws what `work` throws, and device; unsupported
  // where the device cannot record.
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
