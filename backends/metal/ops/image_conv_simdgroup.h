#pragma once

#include "backends/api/args_image.h"
#include "backends/api/impl.h"

namespace rbee::metal {

// Simdgroup matrices (Apple7 and later): f16 and bf16 of one type, in pixels that can be read 16
// bytes at a time. bf16 is not rounded.
extern const Impl<ImageConvArgs> image_conv_simdgroup;

}  // namespace rbee::metal
