#pragma once

#include "backends/api/view.h"

namespace rbee {

enum class ReduceOp : uint8_t { sum, min, max, argmin, argmax };

// y = op over the axes where y has size 1 and x does not; same rank. argmin/argmax: exactly one
// such axis, y is u32, and the first of equal values wins. NaN counts as smaller and as larger than
// every number.
struct ReduceArgs {
  ReduceOp op;
  uint32_t axes = 0;  // bit i set: axis i is reduced (even if it has size 1)
  View x, y;
};

// y = softmax(x) over the last axis
struct SoftmaxArgs {
  View x, y;
};

// y (u32) = indices that sort each last-axis row of x; stable; NaN last in ascending order and
// first in descending order
struct ArgsortArgs {
  View x, y;
  bool descending = false;
};

// The k largest of each row, largest first; of equal values the lower index comes first. NaN counts
// as -infinity, and -0 equals 0.
struct TopKArgs {
  View x;       // (rows, n) f32, f16 or bf16
  View scale;   // (rows) f32, for `sum`; absent: 1
  View values;  // (rows, k) f32, 1 <= k <= n and k <= kMaxTopK
  View ids;     // (rows, k) i32
  // (rows) f32 or absent: sum over the row of exp(scale * (x - largest)), so the softmax of scale *
  // x is exp(scale * (value - largest)) / sum. 0 if all are -infinity, NaN if the largest is
  // infinity.
  View sum;
};
inline constexpr int64_t kMaxTopK = 1024;

}  // namespace rbee
