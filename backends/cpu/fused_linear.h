#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// The best of the table's rms_norm, linear, gated and binary, one after the other.
extern const Impl<FusedLinearArgs> composed_fused_linear;
// ref's, in f32 from end to end.
extern const Impl<FusedLinearArgs> ref_fused_linear;

}  // namespace rbee::cpu
