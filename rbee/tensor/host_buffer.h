#pragma once
// Host memory for repeated copies to or from a device.

#include <cstddef>

#include "backends/api/device.h"

namespace rbee {

class HostBuffer {
 public:
  HostBuffer() = default;
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  // Makes room for `bytes`. If the buffer grows, its contents are lost. Throws out_of_memory.
  void reserve(Device& device, size_t bytes);

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace rbee
