#pragma once
// Linear layers on Hopper whose operands the copy engine fetches (kernels/gemm_tma.cu).

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// f16 and bf16 with weights of x's type, of more than 8 rows and multiples of 8 outputs. Rows of y
// may be any multiple of 8 elements apart.
extern const Impl<LinearArgs> linear_tma;
// Packed weights of f8_g128 if x may be rounded to f8e4m3: with a scale for each 128 elements.
extern const Impl<LinearArgs> linear_tma_e4m3;

}  // namespace rbee::cuda
