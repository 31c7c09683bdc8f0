#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// 2 to 16 rows of x on tensor cores, sm_80 and later: f16 and bf16 weights of rows of whole 16-byte
// packs, x of their type, or f32 with bf16. All parts go in one launch.
extern const Impl<LinearArgs> linear_few_mma;

}  // namespace rbee::cuda
