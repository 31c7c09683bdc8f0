#pragma once
// A named axis of a tensor: code says `constexpr Axis kTime{1};` once and never counts again.
// Negative values count from the end.

namespace rbee {

struct Axis {
  int index;
  // The non-negative index for a tensor of `rank` axes; -1 when out of range.
  constexpr int resolve(int rank) const {
    const int i = index < 0 ? index + rank : index;
    return i >= 0 && i < rank ? i : -1;
  }
};

}  // namespace rbee
