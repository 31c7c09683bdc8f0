#pragma once

#include "backends/api/args_norm.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Any float dtype, any strides.
extern const Impl<LayerNormArgs> layer_norm;
extern const Impl<GroupNormArgs> group_norm;

}  // namespace rbee::gpu
