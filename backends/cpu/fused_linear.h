#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// The best of the table's operations, one after the other.
extern const Impl<FusedLinearArgs> composed_fused_linear;
extern const Impl<LinearNormArgs> composed_linear_norm;
// ref's, in f32 from end to end.
extern const Impl<FusedLinearArgs> ref_fused_linear;
extern const Impl<LinearNormArgs> ref_linear_norm;

}  // namespace rbee::cpu
