#pragma once
// Linear layers of many rows on packed weights on Hopper, which unpack them in registers
// (kernels/gemm_packed.h).

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// For 33 to 2,048 rows of f16, bf16 or f32, which is rounded as for products of few rows, and
// weights of block types in planes: whole units of 128 inputs, multiples of 8 outputs.
extern const Impl<LinearArgs> linear_packed_tma;

}  // namespace rbee::cuda
