#pragma once

#include "backends/api/kernel_table.h"

namespace rbee::cpu {

extern const Impl<LayerNormArgs> ref_layer_norm;
extern const Impl<GroupNormArgs> ref_group_norm;

}  // namespace rbee::cpu
