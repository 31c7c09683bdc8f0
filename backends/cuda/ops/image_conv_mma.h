#pragma once

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Tensor cores through mma.sync: sm_80 and later; see gpu/ops/image_conv.h for what it takes.
extern const Impl<ImageConvArgs> image_conv_mma;

}  // namespace rbee::cuda
