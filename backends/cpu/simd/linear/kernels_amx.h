#pragma once
// Kernels of each packed block type with AMX.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

#define RB_DECLARE(name, ...) extern const PanelKernels linear_##name##_amx;
RB_GGML_BLOCK_TYPES(RB_DECLARE)
#undef RB_DECLARE

}  // namespace rbee::cpu
