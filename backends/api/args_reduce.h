#pragma once

#include "backends/api/view.h"

namespace rbee {

enum class ReduceOp : uint8_t { sum, min, max, argmin, argmax };

// y = op over the axes where y has size 1 and x has not; same rank. argmin/argmax: exactly one such
// axis, y is u32, the first of equal values wins. NaN is smaller and larger than every number.
struct ReduceArgs {
  ReduceOp op;
  uint32_t axes = 0;  // bit i set: axis i is reduced (also when it has size 1)
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

}  // namespace rbee
