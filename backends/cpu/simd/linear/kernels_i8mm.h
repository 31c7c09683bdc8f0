#pragma once
// Kernels of each packed weight type with matrix products of int8 and bf16; other float weights
// have those of NEON.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

#define RB_DECLARE(name, ...) extern const PanelKernels linear_##name##_i8mm;
RB_GGML_BLOCK_TYPES(RB_DECLARE)
#undef RB_DECLARE

}  // namespace rbee::cpu
