#pragma once
// Kernels of each packed weight type with dot products; float weights have those of NEON.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

#define RB_DECLARE(name, ...) extern const PanelKernels linear_##name##_dotprod;
RB_GGML_BLOCK_TYPES(RB_DECLARE)
#undef RB_DECLARE

}  // namespace rbee::cpu
