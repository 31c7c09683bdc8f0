#pragma once
// The specification of convolutions, pooling and upsampling: any plain dtype, any strides, sums in
// double (or 64-bit integers).

#include "backends/api/args_conv.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<Conv1dArgs> ref_conv1d;
extern const Impl<Conv2dArgs> ref_conv2d;
extern const Impl<ConvTranspose1dArgs> ref_conv_transpose1d;
extern const Impl<ConvTranspose2dArgs> ref_conv_transpose2d;
extern const Impl<Im2colArgs> ref_im2col;
extern const Impl<Col2im1dArgs> ref_col2im1d;
extern const Impl<Pool2dArgs> ref_pool2d;
extern const Impl<UpsampleArgs> ref_upsample;

}  // namespace rbee::cpu
