#include "rbee/tensor/graph_capture.h"

#include <utility>

namespace rbee {

GraphCapture::GraphCapture(Device& device, const std::function<void()>& work) : device_(&device) {
  Stream& stream = device.default_stream();
  device.begin_capture(stream);
  try {
    work();
  } catch (...) {
    try {
      device.destroy_capture(device.end_capture(stream));
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // What broke the capture is told by the first error.
    }
    throw;
  }
  captured_ = device.end_capture(stream);
}

GraphCapture::~GraphCapture() {
  if (captured_ != nullptr) device_->destroy_capture(captured_);
}

GraphCapture::GraphCapture(GraphCapture&& other) noexcept
    : device_(other.device_), captured_(std::exchange(other.captured_, nullptr)) {}

GraphCapture& GraphCapture::operator=(GraphCapture&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(captured_, other.captured_);
  return *this;
}

void GraphCapture::replay() const {
  device_->launch_capture(captured_, device_->default_stream());
}

}  // namespace rbee
