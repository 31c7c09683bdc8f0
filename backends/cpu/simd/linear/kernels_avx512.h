#pragma once
// Kernels of each packed weight type with AVX-512.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

extern const PanelKernels linear_f32_avx512;
extern const PanelKernels linear_f16_avx512;
extern const PanelKernels linear_bf16_avx512;
#define RB_DECLARE(name, ...) extern const PanelKernels linear_##name##_avx512;
RB_GGML_BLOCK_TYPES(RB_DECLARE)
#undef RB_DECLARE
extern const PanelKernels linear_f8_g128_avx512;

extern const PanelKernels linear_f8_g128_avx512bf16;

}  // namespace rbee::cpu
