#pragma once

#include "backends/api/args_experts.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

extern const Impl<RouteExpertsArgs> route_experts;
extern const Impl<ExpertLinearArgs> expert_matvec;  // few tokens: limited by memory
extern const Impl<ExpertLinearArgs> expert_tiles;
extern const Impl<ExpertSumArgs> expert_sum;

}  // namespace rbee::gpu
