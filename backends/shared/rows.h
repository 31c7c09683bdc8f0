#pragma once
// The rows of a tensor: everything but its last axis, with any strides.

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

struct Rows {
  i64 sizes[4];    // leading axes, padded in front with 1
  i64 strides[4];  // elements
  i64 step;        // elements between neighbours in a row
};

// Offset in elements of row `row`, counted row-major over the leading axes.
RB_FN i64 row_start(const RB_COPIED Rows& rows, i64 row) {
  if (rows.sizes[0] * rows.sizes[1] * rows.sizes[2] == 1) return row * rows.strides[3];
  i64 offset = 0;
  for (int axis = 3; axis > 0; --axis) {
    offset += row % rows.sizes[axis] * rows.strides[axis];
    row /= rows.sizes[axis];
  }
  return offset + row * rows.strides[0];
}

}  // namespace shared
}  // namespace rbee
