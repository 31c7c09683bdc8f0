#pragma once
// 3 x 3 convolutions of images by Winograd's F(4 x 4, 3 x 3): a quarter of the multiplications.

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// Take stride 1 and images large enough for the transforms to pay.
extern const Impl<ImageConvArgs> avx2_winograd_conv;
extern const Impl<ImageConvArgs> avx512_winograd_conv;
extern const Impl<ImageConvArgs> neon_winograd_conv;

}  // namespace rbee::cpu
