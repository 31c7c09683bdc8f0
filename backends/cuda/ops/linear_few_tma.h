#pragma once
// Linear layers of few rows on Hopper whose operands the copy engine fetches
// (kernels/gemm_few_tma.cu).

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// For 9 to 64 rows of f16 or bf16 and weights of the same type, whose rows are of whole 16 bytes.
extern const Impl<LinearArgs> linear_few_tma;
// The same followed by a norm, up to 32 rows.
extern const Impl<LinearNormArgs> linear_norm_few_tma;

}  // namespace rbee::cuda
