#include "rbee/tensor/host_buffer.h"

#include <utility>

namespace rbee {

HostBuffer::~HostBuffer() {
  if (data_ != nullptr) device_->free_host(data_, bytes_);
}

void HostBuffer::reserve(Device& device, size_t bytes) {
  if (bytes <= bytes_ && device_ == &device) return;
  if (data_ != nullptr) device_->free_host(std::exchange(data_, nullptr), bytes_);
  bytes_ = 0;
  data_ = device.allocate_host(bytes);
  device_ = &device;
  bytes_ = bytes;
}

}  // namespace rbee
