#pragma once
// Loops over several views of one shape with as few axes as their strides allow: neighbouring axes
// that are adjacent in every view count as one. simd files include this, so everything in it is
// private to the including file.

#include "backends/api/view.h"

namespace rbee::cpu {
namespace {

template <int kViews>
struct MergedAxes {
  int rank = 0;  // outermost first; at least 1
  int64_t sizes[kMaxRank];
  int64_t strides[kViews][kMaxRank];

  int64_t columns() const { return sizes[rank - 1]; }
  int64_t column_step(int view) const { return strides[view][rank - 1]; }
  int64_t rows() const {
    int64_t count = 1;
    for (int axis = 0; axis + 1 < rank; ++axis) count *= sizes[axis];
    return count;
  }
  // Offset of row `row` of a view, in elements.
  int64_t row_offset(int view, int64_t row) const {
    int64_t offset = 0;
    for (int axis = rank - 2; axis >= 0; --axis) {
      offset += row % sizes[axis] * strides[view][axis];
      row /= sizes[axis];
    }
    return offset;
  }
};

// All views must have the first one's sizes. Leaves out axes of size 1.
template <int kViews>
MergedAxes<kViews> merged_axes(const View* const (&views)[kViews]) {
  MergedAxes<kViews> out;
  for (int axis = 0; axis < views[0]->rank; ++axis) {
    const int64_t size = views[0]->sizes[axis];
    if (size == 1) continue;
    bool follows = out.rank > 0;
    for (int v = 0; v < kViews && follows; ++v) {
      follows = out.strides[v][out.rank - 1] == views[v]->strides[axis] * size;
    }
    if (!follows) out.sizes[out.rank++] = 1;
    out.sizes[out.rank - 1] *= size;
    for (int v = 0; v < kViews; ++v) out.strides[v][out.rank - 1] = views[v]->strides[axis];
  }
  if (out.rank > 0) return out;
  out.rank = 1;
  out.sizes[0] = 1;
  for (int v = 0; v < kViews; ++v) out.strides[v][0] = 0;
  return out;
}

}  // namespace
}  // namespace rbee::cpu
