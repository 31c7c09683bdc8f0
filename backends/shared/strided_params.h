#pragma once
// A space of up to five axes that element-wise kernels walk, with one stride for each operand.

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

// Divides by a number that the host knows, by multiplication (Granlund and Montgomery 1994,
// "Division by invariant integers using multiplication", figure 4.1), for n < 2^31.
struct Divider {
  u32 divisor;
  u32 factor;
  u32 shift;
};

// divisor > 0
RB_FN Divider make_divider(u32 divisor) {
  u32 shift = 0;
  while ((static_cast<u64>(1) << shift) < divisor) ++shift;
  const u64 rest = (static_cast<u64>(1) << shift) - divisor;
  return Divider{divisor, static_cast<u32>((rest << 32) / divisor + 1), shift};
}

// n / divisor for n < 2^31: the sum stays below 2^32.
RB_FN u32 divide(u32 n, const RB_COPIED Divider& by) {
  const u32 high = static_cast<u32>((static_cast<u64>(n) * by.factor) >> 32);
  return (high + n) >> by.shift;
}

// n / divisor for any n >= 0.
RB_FN i64 divide_any(i64 n, const RB_COPIED Divider& by) {
  return n < 0x80000000ll ? divide(static_cast<u32>(n), by) : n / by.divisor;
}

// Axes are kept innermost first.
template <int kOperands>
struct Strided {
  u32 count;  // elements of the space, below 2^31
  i32 rank;
  // If not 0, threads take this many neighbouring elements. Each operand's are adjacent and aligned
  // to that many elements, or are one element (stride 0).
  u32 packed;
  Divider sizes[5];
  i64 strides[kOperands][5];  // elements
};

}  // namespace shared
}  // namespace rbee
