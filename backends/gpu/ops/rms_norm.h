#pragma once

#include "backends/api/args_norm.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Any float dtype, any strides.
extern const Impl<RmsNormArgs> rms_norm;
extern const Impl<AddRmsNormArgs> add_rms_norm;

}  // namespace rbee::gpu
