#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Warpgroup products: sm_90a; f16 and bf16 weights under x of their type or f32.
extern const Impl<LinearArgs> linear_wgmma;
// The same kernels under products of activations: gpu/ops/tensor_matmul.h.
extern const Impl<MatmulArgs> matmul_wgmma;

}  // namespace rbee::cuda
