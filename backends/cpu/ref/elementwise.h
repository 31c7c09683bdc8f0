#pragma once
// unary.cc, binary.cc, cast.cc and copy.cc

#include "backends/api/kernel_table.h"

namespace rbee::cpu {

extern const Impl<AffineArgs> ref_affine;
extern const Impl<UnaryArgs> ref_unary;
extern const Impl<BinaryArgs> ref_binary;
extern const Impl<CompareArgs> ref_compare;
extern const Impl<WhereArgs> ref_where;
extern const Impl<CastArgs> ref_cast;
extern const Impl<CopyArgs> ref_copy;
extern const Impl<Copy2dArgs> ref_copy2d;
extern const Impl<FillArgs> ref_fill;

}  // namespace rbee::cpu
