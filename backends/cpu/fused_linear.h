#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// Runs the table's best operations one after the other.
extern const Impl<FusedLinearArgs> composed_fused_linear;
extern const Impl<LinearNormArgs> composed_linear_norm;
// Runs ref's operations, in f32 throughout.
extern const Impl<FusedLinearArgs> ref_fused_linear;
extern const Impl<LinearNormArgs> ref_linear_norm;

}  // namespace rbee::cpu
