#pragma once

#include "backends/api/args_experts.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<RouteExpertsArgs> ref_route_experts;
extern const Impl<ExpertLinearArgs> ref_expert_linear;
extern const Impl<ExpertSumArgs> ref_expert_sum;

}  // namespace rbee::cpu
