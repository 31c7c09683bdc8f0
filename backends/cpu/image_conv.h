#pragma once
// Convolutions of images with the channels last as matrix products with packed weights: one driver
// for every instruction set, with the kernels of the linear layers.

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<ImageConvArgs> portable_image_conv;
extern const Impl<ImageConvArgs> avx2_image_conv;
extern const Impl<ImageConvArgs> avxvnni_image_conv;
extern const Impl<ImageConvArgs> avx512_image_conv;
extern const Impl<ImageConvArgs> avx512bf16_image_conv;
// bf16 with bf16 only; faster than Winograd's form of it.
extern const Impl<ImageConvArgs> amx_image_conv;
extern const Impl<ImageConvArgs> neon_image_conv;
extern const Impl<ImageConvArgs> dotprod_image_conv;
// bf16 with bf16, and block types.
extern const Impl<ImageConvArgs> i8mm_image_conv;

}  // namespace rbee::cpu
