#pragma once
// Linear layers of few rows on packed weights, on matrix units (kernels/matvec_matrix.h).

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::rocm {

// For 5 to 64 rows of f32, f16 or bf16 and weights of block types in planes.
extern const Impl<LinearArgs> linear_few_mfma;  // gfx908, gfx90a, gfx942, gfx950
extern const Impl<LinearArgs> linear_few_wmma;  // gfx11, gfx12

}  // namespace rbee::rocm
