#pragma once
// Where the matrices of a batch of products lie: see shared::MatmulParams.

#include "backends/gpu/portable.h"
#include "backends/shared/product_params.h"

namespace rbee {
namespace gpu {

// Elements between the batch's first matrix and number `index`.
RB_DEVICE i64 batch_offset(const i64* sizes, const i64* strides, i64 index) {
  i64 offset = 0;
  for (int axis = kProductBatchAxes - 1; axis >= 0; --axis) {
    offset += index % sizes[axis] * strides[axis];
    index /= sizes[axis];
  }
  return offset;
}

}  // namespace gpu
}  // namespace rbee
