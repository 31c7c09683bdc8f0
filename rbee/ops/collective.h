#pragma once
// Operations of all ranks of a group together. Every rank must call the same ones in the same
// order, with the same shapes and types. All throw device if the group has ended, and unsupported
// if no implementation takes the type or the group's link. With a rank alone they copy nothing.

#include "backends/api/group_view.h"
#include "rbee/ops/norm.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

// The sum of all ranks' x, in x's type, with the same bits on every rank. x: any shape, contiguous;
// f32, f16, bf16 or i32. Floats are added in f32 and rounded once.
Tensor all_reduce(const Tensor& x, const GroupView& group);

// residual + all_reduce(x), and its RMS norm. x, residual: (rows, dim)   weight: (dim)
SumAndNorm reduce_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps,
                       const GroupView& group);

// (ranks, x's shape...): x of every rank. x: any shape and plain type, contiguous.
Tensor all_gather(const Tensor& x, const GroupView& group);

// x of rank `root` replaces x of the others. x: any shape and plain type, contiguous.
void broadcast_(const Tensor& x, int root, const GroupView& group);

}  // namespace rbee
