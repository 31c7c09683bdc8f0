#pragma once
// Convolutions of images with the channels last.

#include "backends/api/args_image.h"
#include "backends/api/impl.h"
#include "backends/gpu/ops/tensor_linear.h"
#include "backends/shared/image_params.h"

namespace rbee::gpu {

// Every float type, any strides.
extern const Impl<ImageConvArgs> image_conv_plain;

shared::ImageConvParams image_conv_params(const ImageConvArgs& args);

// Common to the vendors' kernels on matrix instructions. Null for f16 and bf16 of one
// type, in pixels that can be read 16 bytes at a time; else the reason.
const char* refuse_tensor_image_conv(const ImageConvArgs& args);
// Kernels image_conv_<type>_<tile's name> in the tiles' family, each taking ImageConvParams.
void run_tensor_image_conv(const TensorTiles& tiles, const ImageConvArgs& args, Stream& stream);

}  // namespace rbee::gpu
