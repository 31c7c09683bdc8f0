#pragma once
// Tensors of four-byte elements that lie one behind another, so that one copy moves several.

#include <memory>

#include "rbee/tensor/tensor.h"

namespace rbee::engine {

class BufferParts {
 public:
  // Of device memory of its own. Throws out_of_memory.
  BufferParts(Device& device, int64_t elements)
      : buffer_(std::make_shared<Buffer>(device, static_cast<size_t>(elements) * 4)) {}

  // The next elements, contiguous, of a type of four bytes.
  Tensor take(const Shape& shape, DType dtype) {
    const Tensor out = at(taken_, shape, dtype);
    taken_ += numel(shape);
    return out;
  }
  // Those from `element` on, whoever has taken them.
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
