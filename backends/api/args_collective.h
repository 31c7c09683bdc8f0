#pragma once
// Operations of all ranks of a group together. Every rank must run the same ones in the same order,
// with the same sizes and types: an implementation may refuse by the shape, the type and the
// group's link, never by what only one rank knows. All views are contiguous.

#include "backends/api/group_view.h"
#include "backends/api/view.h"

namespace rbee {

// y = the sum of all ranks' x. Floats are added in f32 and rounded once, i32 wraps. All ranks get
// the same bits.
struct AllReduceArgs {
  View x, y;  // f32, f16, bf16 or i32; may be the same memory
  GroupView group;
};

// sum = residual + the sum of all ranks' x;  y = rms_norm(sum) * weight
struct ReduceNormArgs {
  View x, residual, weight;  // x, residual: (rows, dim)   weight: (dim)
  View sum, y;               // (rows, dim)
  float eps = 1e-5f;
  GroupView group;
};

// y[r] = rank r's x
struct AllGatherArgs {
  View x;  // any type but blocks, any shape
  View y;  // (ranks, numel of x)
  GroupView group;
};

// x of rank `root` replaces the others' x.
struct BroadcastArgs {
  View x;  // any type but blocks, any shape
  int root = 0;
  GroupView group;
};

}  // namespace rbee
