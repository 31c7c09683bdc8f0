#pragma once
// binary.cc, unary.cc, cast.cc, gated.cc and move.cc

#include "backends/api/args_elementwise.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Every plain dtype, any strides.
extern const Impl<AffineArgs> affine;
extern const Impl<UnaryArgs> unary;
extern const Impl<BinaryArgs> binary;
extern const Impl<CompareArgs> compare;
extern const Impl<WhereArgs> where;
extern const Impl<CopyArgs> copy;
extern const Impl<Copy2dArgs> copy2d;
extern const Impl<FillArgs> fill;
// Every float dtype, any strides.
extern const Impl<GatedArgs> gated;
// Between plain dtypes, and from every block type to every float.
extern const Impl<CastArgs> cast;

}  // namespace rbee::gpu
