#pragma once
// Work that the host does in the middle of a device's work.

#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "rbee/tensor/host_buffer.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

// Takes tensors of a device to the host and a result back, through page-locked memory that it
// keeps. Threads may share it: their calls follow one another.
class HostTrip {
 public:
  // Gets copies on the host, valid until it returns; gives a contiguous tensor there.
  using Work = std::function<Tensor(std::span<const Tensor> copies)>;

  // Both must outlive this. The host must be able to read the memory of `host`.
  HostTrip(Device& device, Device& host) : device_(device), host_(host) {}
  ~HostTrip();
  HostTrip(const HostTrip&) = delete;
  HostTrip& operator=(const HostTrip&) = delete;

  // Gives the result of `work` on the device. Waits once for the device's current stream, before
  // `work`; the copy back is only queued. All calls must be on one stream.
  //   tensors: of the device, contiguous
  // Throws out_of_memory, and what the device and `work` throw.
  Tensor run(std::span<const Tensor> tensors, const Work& work);

 private:
  std::vector<Tensor> fetch(std::span<const Tensor> tensors);
  Tensor put(const Tensor& result);

  Device& device_;
  Device& host_;
  std::mutex mutex_;
  HostBuffer there_, back_;
};

}  // namespace rbee
