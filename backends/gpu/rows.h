#pragma once
// Views as kernels take them.

#include <cstddef>
#include <initializer_list>

#include "backends/api/view.h"
#include "backends/shared/rows.h"
#include "rbee/core/dtype.h"

namespace rbee::gpu {

// The rows of a view of rank 1 to 5.
inline shared::Rows rows_of(const View& view) {
  shared::Rows rows{{1, 1, 1, 1}, {0, 0, 0, 0}, view.rank > 0 ? view.stride(-1) : 1};
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    const int at = 4 - (view.rank - 1) + axis;
    rows.sizes[at] = view.sizes[axis];
    rows.strides[at] = view.strides[axis];
  }
  // Leading axes that lie one after another count as one: no division per row.
  for (int axis = 2; axis >= 0; --axis) {
    if (rows.sizes[axis] == 1) continue;
    if (rows.strides[axis] != rows.sizes[3] * rows.strides[3]) break;
    rows.sizes[3] *= rows.sizes[axis];
    rows.sizes[axis] = 1;
  }
  return rows;
}

inline int64_t row_count(const View& view) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < view.rank; ++axis) rows *= view.sizes[axis];
  return rows;
}

// What a launch takes where a block of threads has a row: AMD counts threads in 32 bits.
inline constexpr int64_t kMostRows = int64_t{1} << 23;

// Calls body(args) for parts of at most `most` rows (at least 1) of `views`, whose leading axes
// are the same; absent ones are left out.
template <typename Args, typename Body>
void for_row_parts(const Args& args, std::initializer_list<View Args::*> views, int64_t most,
                   Body&& body) {
  const View& whole = args.**views.begin();
  if (row_count(whole) <= most) return body(args);
  int axis = 0;
  while (whole.sizes[axis] == 1) ++axis;
  const int64_t half = whole.sizes[axis] / 2;
  Args low = args, high = args;
  for (View Args::* const view : views) {
    if (!(args.*view)) continue;
    (low.*view).sizes[axis] = half;
    View& rest = high.*view;
    rest.data =
        rest.template as<std::byte>() + half * rest.strides[axis] * info(rest.dtype).block_bytes;
    rest.sizes[axis] -= half;
  }
  for_row_parts(low, views, most, body);
  for_row_parts(high, views, most, body);
}

// To 16 bytes.
inline bool aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

// True when rows can be read 16 bytes at a time: neighbours adjoin, and every row begins and ends
// on a multiple of 16 bytes.
inline bool vector_rows(const View& view) {
  const int64_t each = 16 / info(view.dtype).block_bytes;
  if (view.rank == 0 || view.stride(-1) != 1 || view.size(-1) % each != 0) return false;
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    if (view.sizes[axis] > 1 && view.strides[axis] % each != 0) return false;
  }
  return aligned(view.data);
}

}  // namespace rbee::gpu
