#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// 2 to 16 rows of x on tensor cores, sm_80 and later: f16 and bf16 weights with rows of whole
// 16-byte packs, x of their type, or f32 with bf16. One launch does all parts.
extern const Impl<LinearArgs> linear_few_mma;

}  // namespace rbee::cuda
