#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Tensor cores through mma.sync: sm_80 and later; gpu/ops/tensor_linear.h lists what it takes.
extern const Impl<LinearArgs> linear_mma;
// The same kernels under products of activations: gpu/ops/tensor_matmul.h.
extern const Impl<MatmulArgs> matmul_mma;

}  // namespace rbee::cuda
