#pragma once
// Kernels of each packed weight type with NEON.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

extern const PanelKernels linear_f32_neon;
extern const PanelKernels linear_f16_neon;
extern const PanelKernels linear_bf16_neon;
#define RB_DECLARE(name, ...) extern const PanelKernels linear_##name##_neon;
RB_GGML_BLOCK_TYPES(RB_DECLARE)
#undef RB_DECLARE
extern const PanelKernels linear_f8_g128_neon;

}  // namespace rbee::cpu
