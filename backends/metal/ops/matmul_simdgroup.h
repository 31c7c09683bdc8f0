#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::metal {

// Simdgroup matrices (Apple7 and later): f32, f16 and bf16, any strides and batches. f32 and bf16
// are not rounded.
extern const Impl<MatmulArgs> matmul_simdgroup;

}  // namespace rbee::metal
