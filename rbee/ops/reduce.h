#pragma once

#include <span>

#include "backends/api/args_reduce.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

// x reduced over `axes`, which stay with size 1. x: any plain type and strides.
//   sum, min, max: x's dtype. Sums of integers are modulo 2^bits, sums of small floats are taken in
//   a wider type. min and max of NaN are NaN, and need at least one element to reduce.
//   argmin, argmax: u32, exactly one axis; the first of equal values wins, and the first NaN over
//   every number.
Tensor reduce(ReduceOp op, const Tensor& x, std::span<const Axis> axes);
Tensor reduce(ReduceOp op, const Tensor& x, Axis axis);

}  // namespace rbee
