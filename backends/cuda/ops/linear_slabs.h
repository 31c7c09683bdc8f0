#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Weights of other types under many rows: gpu/ops/linear_slabs.h.
extern const Impl<LinearArgs> linear_slabs_mma;
extern const Impl<LinearArgs> linear_slabs_wgmma;

}  // namespace rbee::cuda
