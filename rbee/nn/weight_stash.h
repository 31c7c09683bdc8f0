#pragma once
// The weights of one part of a model as they were on its device, in host memory: for parts that
// leave the device and come back.

#include <memory>
#include <optional>
#include <vector>

#include "rbee/tensor/host_buffer.h"
#include "rbee/tensor/tensor.h"

namespace rbee::nn {

// A WeightScope that is given one adds every tensor it hands out. A part that is made again takes
// the same tensors in the same order, so that nothing is read, converted or packed a second time.
class WeightStash {
 public:
  void add(const Tensor& weight) { added_.push_back(weight); }
  // A part has moved a tensor that was added; unknown ones are left alone.
  void replace(const Tensor& weight, const Tensor& moved);

  // Copies what was added to host memory that the device reaches fastest, and lets go of it. Later
  // calls do nothing, for weights do not change. Throws out_of_memory, and device.
  void fill();
  bool filled() const { return !saved_.empty(); }

  // For a part that is made again: next() begins with the first tensor.
  void rewind() { next_ = 0; }
  // The next tensor in new memory of its device, tensors of one buffer in one again; the copy is
  // ordered with the device's stream.
  // Throws out_of_memory naming the bytes, and device.
  Tensor next();

  // As if nothing had been added; the host memory is given back.
  void clear();

 private:
  struct SavedBuffer {
    Device* device;
    size_t at;  // of its bytes in host_
    size_t bytes;
    std::weak_ptr<Buffer> made;  // on the device, by next()
  };
  struct Saved {
    View view;
    size_t buffer;  // index into buffers_
    size_t offset;  // of the tensor in it
  };

  std::vector<Tensor> added_;
  std::vector<SavedBuffer> buffers_;
  std::vector<Saved> saved_;
  std::optional<HostBuffer> host_;
  size_t next_ = 0;
};

}  // namespace rbee::nn
