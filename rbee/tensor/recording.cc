#include "rbee/tensor/recording.h"

#include <utility>

namespace rbee {

Recording::Recording(Device& device, const std::function<void()>& work) : device_(&device) {
  Stream& stream = device.default_stream();
  device.begin_capture(stream);
  try {
    work();
  } catch (...) {
    try {
      device.destroy_capture(device.end_capture(stream));
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // What broke the recording is told by the first error.
    }
    throw;
  }
  captured_ = device.end_capture(stream);
}

Recording::~Recording() {
  if (captured_ != nullptr) device_->destroy_capture(captured_);
}

Recording::Recording(Recording&& other) noexcept
    : device_(other.device_), captured_(std::exchange(other.captured_, nullptr)) {}

Recording& Recording::operator=(Recording&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(captured_, other.captured_);
  return *this;
}

void Recording::replay() const {
  device_->launch_capture(captured_, device_->default_stream());
}

}  // namespace rbee
