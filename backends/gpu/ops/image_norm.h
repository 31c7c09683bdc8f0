#pragma once

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Every float type, any strides.
extern const Impl<ImageGroupNormArgs> image_group_norm;

}  // namespace rbee::gpu
