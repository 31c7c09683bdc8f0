#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::rocm {

// Matrix instructions: gfx908, gfx90a, gfx942, gfx950 (MFMA), gfx11 and gfx12 (WMMA); dot products
// of pairs on the other targets. gpu/ops/tensor_linear.h lists what it takes.
extern const Impl<LinearArgs> linear_mfma;
extern const Impl<LinearArgs> linear_wmma;
extern const Impl<LinearArgs> linear_dot;
// The same kernels under products of activations: gpu/ops/tensor_matmul.h.
extern const Impl<MatmulArgs> matmul_mfma, matmul_wmma, matmul_dot;
// Weights of other types under many rows, on matrix instructions and on dot products:
// gpu/ops/linear_slabs.h.
extern const Impl<LinearArgs> linear_slabs;
extern const Impl<LinearArgs> linear_slabs_dot;

}  // namespace rbee::rocm
