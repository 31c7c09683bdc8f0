#pragma once

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Hopper's tensor cores (sm_90a); see gpu/ops/image_conv.h for what it takes.
extern const Impl<ImageConvArgs> image_conv_wgmma;

}  // namespace rbee::cuda
