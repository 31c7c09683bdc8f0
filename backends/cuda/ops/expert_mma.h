#pragma once

#include "backends/api/args_experts.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Tensor cores, sm_80 and later (gpu/ops/expert_tensor.h).
extern const Impl<ExpertLinearArgs> expert_mma;

}  // namespace rbee::cuda
