#pragma once

#include "backends/api/args_experts.h"
#include "backends/api/impl.h"

namespace rbee::rocm {

// Weights as they lie, for experts of few choices (kernels/expert_few.h).
extern const Impl<ExpertLinearArgs> expert_few_mfma, expert_few_wmma;
// Matrix instructions, or dot products where a target has none (gpu/ops/expert_tensor.h).
extern const Impl<ExpertLinearArgs> expert_mfma, expert_wmma, expert_dot;

}  // namespace rbee::rocm
