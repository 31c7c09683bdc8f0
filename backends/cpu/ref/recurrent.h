#pragma once

#include "backends/api/args_recurrent.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<CausalConvArgs> ref_causal_conv;
extern const Impl<DeltaRuleArgs> ref_delta_rule;

}  // namespace rbee::cpu
