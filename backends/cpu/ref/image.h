#pragma once
// The specification of operations on images with the channels last: float types, any strides, sums
// in double.

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<ImageConvArgs> ref_image_conv;
extern const Impl<ImageGroupNormArgs> ref_image_group_norm;

}  // namespace rbee::cpu
