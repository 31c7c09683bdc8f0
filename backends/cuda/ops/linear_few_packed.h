#pragma once
// Linear layers of few rows on packed weights, on tensor cores (kernels/matvec_mma_packed.h).

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// For 5 to 64 rows of f32, f16 or bf16 and weights of block types in planes, sm_80 and later.
extern const Impl<LinearArgs> linear_few_packed;
extern const Impl<LinearNormArgs> linear_norm_few_packed;
// The same up to 32 rows, if linear_packed_tma takes more.
extern const Impl<LinearNormArgs> linear_norm_fewer_packed;

}  // namespace rbee::cuda
