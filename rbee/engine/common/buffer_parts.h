#pragma once
// Tensors of four-byte elements in one buffer, so that one copy moves several of them.

#include <memory>

#include "rbee/tensor/tensor.h"

namespace rbee::engine {

class BufferParts {
 public:
  // Allocates device memory. Throws out_of_memory.
  BufferParts(Device& device, int64_t elements)
      : buffer_(std::make_shared<Buffer>(device, static_cast<size_t>(elements) * 4)) {}

  // A tensor of the next elements, contiguous, of a four-byte type.
  Tensor take(const Shape& shape, DType dtype) {
    const Tensor out = at(taken_, shape, dtype);
    taken_ += numel(shape);
    return out;
  }
  // A tensor of the elements from `element` on, even if another tensor has them.
  Tensor at(int64_t element, const Shape& shape, DType dtype) const {
    RB_ASSERT(info(dtype).block_bytes == 4 &&
              (element + numel(shape)) * 4 <= static_cast<int64_t>(buffer_->bytes()));
    View view;
    view.data = buffer_->data() + element * 4;
    view.dtype = dtype;
    view.rank = static_cast<int8_t>(shape.rank());
    int64_t step = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      view.sizes[axis] = shape[axis];
      view.strides[axis] = step;
      step *= shape[axis];
    }
    return Tensor::from_buffer(buffer_, view);
  }
  int64_t taken() const { return taken_; }

 private:
  std::shared_ptr<Buffer> buffer_;
  int64_t taken_ = 0;
};

}  // namespace rbee::engine
