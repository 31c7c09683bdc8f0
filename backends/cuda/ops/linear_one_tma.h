#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Hopper, one row of x on weights of f16, bf16 and block types, in whole tiles of 32 rows of each
// part but the last, and heads of multiples of 32 elements: gpu::linear_one, gpu::fused_linear_one
// and gpu::qkv_append_one with weights that the copy engine fetches (kernels/matvec_one_tma.h).
extern const Impl<LinearArgs> linear_one_tma;
extern const Impl<FusedLinearArgs> fused_linear_one_tma;
extern const Impl<QkvAppendArgs> qkv_append_one_tma;

}  // namespace rbee::cuda
