#pragma once

#include "backends/api/args_recurrent.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// f32, f16, bf16 and f64, any strides.
extern const Impl<CausalConvArgs> causal_conv;
// The same, with keys of up to 256 elements.
extern const Impl<DeltaRuleArgs> delta_rule;

}  // namespace rbee::gpu
