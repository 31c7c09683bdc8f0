#pragma once
// Loops over views of any rank and any strides, in row-major order.

#include <cstddef>
#include <utility>

#include "backends/api/view.h"

namespace rbee::cpu {

namespace detail {

template <typename Body, size_t... kView>
void for_each_impl(const View* const* views, Body& body, std::index_sequence<kView...>) {
  const View& shape = *views[0];
  if (shape.numel() == 0) return;
  int64_t index[kMaxRank] = {};
  int64_t at[sizeof...(kView)] = {};
  for (;;) {
    body(at[kView]...);
    int axis = shape.rank - 1;
    for (; axis >= 0; --axis) {
      ((at[kView] += views[kView]->strides[axis]), ...);
      if (++index[axis] < shape.sizes[axis]) break;
      index[axis] = 0;
      ((at[kView] -= views[kView]->strides[axis] * shape.sizes[axis]), ...);
    }
    if (axis < 0) return;
  }
}

}  // namespace detail

// Calls body(offset in view 0, offset in view 1, ...) for each index of the first view's sizes;
// offsets are in elements, and the other views have at least the first one's axes.
template <typename Body, typename... Views>
void for_each(Body&& body, const Views&... views) {
  const View* const list[] = {&views...};
  detail::for_each_impl(list, body, std::make_index_sequence<sizeof...(Views)>{});
}

// Offset in elements of one index, a value for each axis.
template <typename... Index>
int64_t offset_of(const View& view, Index... index) {
  int64_t offset = 0;
  int axis = 0;
  ((offset += index * view.strides[axis++]), ...);
  return offset;
}

// The view without one axis: its first element only.
inline View without_axis(View view, int axis) {
  for (int i = axis; i + 1 < view.rank; ++i) {
    view.sizes[i] = view.sizes[i + 1];
    view.strides[i] = view.strides[i + 1];
  }
  --view.rank;
  return view;
}

// The view without its last axis: what a loop over rows walks.
inline View rows_of(const View& view) {
  return without_axis(view, view.rank - 1);
}

// The view with a new axis of size 1 before `axis`; rank stays within kMaxRank.
inline View with_axis(View view, int axis) {
  for (int i = view.rank - 1; i >= axis; --i) {
    view.sizes[i + 1] = view.sizes[i];
    view.strides[i + 1] = view.strides[i];
  }
  view.sizes[axis] = 1;
  view.strides[axis] = 0;
  ++view.rank;
  return view;
}

}  // namespace rbee::cpu
