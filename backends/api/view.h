#pragma once
// View: a kernel's view of a tensor. Kernels trust it; rbee/ops checks it before it makes one.

#include <cstdint>

#include "rbee/core/dtype.h"
#include "rbee/core/shape.h"

namespace rbee {

struct View {
  void* data = nullptr;  // null: the optional operand is absent
  DType dtype = DType::f32;
  // Weight layout chosen by the backend's pack_weight, or kPagePacking of a q8_0 cache
  // (shared/kv_page.h); 0 is the plain row-major layout.
  uint8_t packing = 0;
  int8_t rank = 0;
  int64_t sizes[kMaxRank] = {};    // elements, outermost first
  int64_t strides[kMaxRank] = {};  // elements, 0 where broadcast; block types: whole rows only

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  explicit operator bool() const { return data != nullptr; }
  int64_t size(int axis) const { return sizes[axis < 0 ? rank + axis : axis]; }
  int64_t stride(int axis) const { return strides[axis < 0 ? rank + axis : axis]; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= sizes[i];
    return n;
  }
  // True if elements are row-major without gaps (axes of size 1 may have any stride), or if there
  // are none.
  bool contiguous() const {
    if (numel() == 0) return true;
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (sizes[i] != 1 && strides[i] != step) return false;
      step *= sizes[i];
    }
    return true;
  }
};

}  // namespace rbee
