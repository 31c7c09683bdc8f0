#pragma once
// Host memory for what travels to or from a device again and again.

#include <cstddef>

#include "backends/api/device.h"

namespace rbee {

class HostBuffer {
 public:
  HostBuffer() = default;
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  // Makes room for `bytes`; what it held is lost when it has to grow. Throws out_of_memory.
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
