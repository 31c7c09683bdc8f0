#pragma once

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::rocm {

// Matrix instructions, or dot products if a target has none; gpu/ops/image_conv.h lists what
// they take.
extern const Impl<ImageConvArgs> image_conv_mfma;
extern const Impl<ImageConvArgs> image_conv_wmma;
extern const Impl<ImageConvArgs> image_conv_dot;

}  // namespace rbee::rocm
