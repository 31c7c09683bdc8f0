#pragma once
// Linear layers of chosen experts, by the linear kernels: gathers the choices of an expert, so that
// its weight is read once. Also the sum of their results, on all threads.

#include "backends/api/args_experts.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<ExpertLinearArgs> grouped_expert_linear;
extern const Impl<ExpertSumArgs> rows_expert_sum;

}  // namespace rbee::cpu
