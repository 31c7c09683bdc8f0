#include "rbee/tensor/device_mark.h"

namespace rbee {

DeviceMark::DeviceMark(Device& device) : device_(device), stream_(device.create_stream()) {
  try {
    event_ = device.create_event();
  } catch (...) {
    device.destroy_stream(stream_);
    throw;
  }
}

DeviceMark::~DeviceMark() {
  device_.destroy_event(event_);
  device_.destroy_stream(stream_);
}

void DeviceMark::set() {
  device_.record_event(event_, device_.default_stream());
}

void DeviceMark::wait() {
  device_.wait_event(event_, stream_);
  device_.synchronize(stream_);
}

}  // namespace rbee
