#pragma once

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::cuda {

// Hopper's tensor cores and copy engine (sm_90a). It takes what gpu/ops/image_conv.h lists for
// tensor cores, if the engine's maps can hold paddings and kernels and every axis has its own
// place in memory; enlarged images with a stride of 1 and outputs of twice the size.
extern const Impl<ImageConvArgs> image_conv_tma;

}  // namespace rbee::cuda
