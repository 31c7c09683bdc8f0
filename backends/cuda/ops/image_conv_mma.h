#pragma once

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Tensor cores: mma.sync on sm_80 and later, wgmma on sm_90a; see gpu/ops/image_conv.h for what
// they take.
extern const Impl<ImageConvArgs> image_conv_mma;

}  // namespace rbee::cuda
