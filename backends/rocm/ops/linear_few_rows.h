#pragma once
// Linear layers of few rows on matrix units (kernels/matvec_matrix.h): mfma on gfx908, gfx90a,
// gfx942 and gfx950, wmma on gfx11 and gfx12.

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::rocm {

// For 5 to 64 rows of f32, f16 or bf16 and weights of block types in planes.
extern const Impl<LinearArgs> linear_few_packed_mfma;
extern const Impl<LinearArgs> linear_few_packed_wmma;
// For 9 to 64 rows of f16 or bf16 and weights of the same type.
extern const Impl<LinearArgs> linear_few_plain_mfma;
extern const Impl<LinearArgs> linear_few_plain_wmma;
// The same followed by a norm.
extern const Impl<LinearNormArgs> linear_norm_few_packed_mfma;
extern const Impl<LinearNormArgs> linear_norm_few_packed_wmma;
extern const Impl<LinearNormArgs> linear_norm_few_plain_mfma;
extern const Impl<LinearNormArgs> linear_norm_few_plain_wmma;

}  // namespace rbee::rocm
