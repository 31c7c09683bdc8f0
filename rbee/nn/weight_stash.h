#pragma once
// Keeps the weights of one part of a model in host memory, in the form that they had on the device.
// For parts that leave the device and come back.

#include <memory>
#include <optional>
#include <vector>

#include "rbee/tensor/host_buffer.h"
#include "rbee/tensor/tensor.h"

namespace rbee::nn {

// A WeightScope with a stash adds every tensor that it hands out. When the part is made again, it
// takes the same tensors in the same order: nothing is read, converted or packed a second time.
class WeightStash {
 public:
  void add(const Tensor& weight) { added_.push_back(weight); }
  // Call this if a part has moved an added tensor; ignores unknown tensors.
  void replace(const Tensor& weight, const Tensor& moved);

  // Copies the added tensors to the host memory that the device reaches fastest, and releases them.
  // Later calls do nothing, because weights do not change. Throws out_of_memory, and device.
  void fill();
  bool filled() const { return !saved_.empty(); }

  // Lets next() begin with the first tensor again.
  void rewind() { next_ = 0; }
  // The next tensor, in new memory of its device; tensors that shared a buffer share one again. The
  // device's stream orders the copy. Throws out_of_memory naming the bytes, and device.
  Tensor next();

  // Forgets all tensors and frees the host memory.
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
