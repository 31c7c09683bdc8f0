#pragma once

#include "backends/api/args_conv.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Every plain dtype, any strides.
extern const Impl<Conv1dArgs> conv1d_direct;
extern const Impl<Conv2dArgs> conv2d_direct;
extern const Impl<ConvTranspose1dArgs> conv_transpose1d;
extern const Impl<ConvTranspose2dArgs> conv_transpose2d;
extern const Impl<Im2colArgs> im2col;
extern const Impl<Col2im1dArgs> col2im1d;
extern const Impl<Pool2dArgs> pool2d;
extern const Impl<UpsampleArgs> upsample;  // bilinear: float dtypes

// f32, f16 and bf16 with contiguous weights, for groups of more than a few channels.
extern const Impl<Conv1dArgs> conv1d_tile;
extern const Impl<Conv2dArgs> conv2d_tile;

}  // namespace rbee::gpu
