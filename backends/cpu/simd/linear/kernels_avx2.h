#pragma once
// Kernels of each packed weight type with AVX2.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

extern const PanelKernels linear_f32_avx2;
extern const PanelKernels linear_f16_avx2;
extern const PanelKernels linear_bf16_avx2;
#define RB_DECLARE(name, ...) extern const PanelKernels linear_##name##_avx2;
RB_GGML_BLOCK_TYPES(RB_DECLARE)
#undef RB_DECLARE
extern const PanelKernels linear_f8_g128_avx2;

}  // namespace rbee::cpu
