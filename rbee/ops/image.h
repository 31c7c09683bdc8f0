#pragma once
// What image models are made of: convolutions and group norms of images that keep the channels of a
// pixel together, (batch, height, width, channels). A pixel is then a row of a matrix: a reshape to
// (batch, height * width, channels) is what linear layers and attention read.

#include "backends/api/args_image.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

struct ConvWeights {
  Tensor weight;  // (out, kernel_h, kernel_w, in) as pack_conv_weight gives it
  Tensor bias;    // (out), x's dtype, or undefined
};

// (out, in, kernel_h, kernel_w), a plain float type, as checkpoints hold it -> the layout that this
// device's image_conv reads fastest, of shape (out, kernel_h, kernel_w, in). Once at load.
Tensor pack_conv_weight(const Tensor& weight);
// The same of (out, kernel_h, kernel_w, in), a plain float type or q8_0.
Tensor pack_channels_last(const Tensor& weight);

// Axes of a picture that are rings: what is padded there comes from the opposite end, so that
// pictures can be laid side by side without a seam.
struct Circular {
  bool x = false, y = false;

  bool any() const { return x || y; }
};

struct ImageConvOptions {
  int64_t stride = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;  // pixels of zeros
  // x is read as if enlarged twice by nearest neighbour, before the padding.
  bool upsample = false;
  // Instead of zeros; at most the image's size in pixels. Copies x. Not with a residual where x is
  // enlarged.
  Circular circular;
  Tensor channel_add;  // (batch, out), x's dtype, added to every pixel, or undefined
  Tensor residual;     // (batch, out_h, out_w, out), x's dtype, added, or undefined
};

// Cross-correlation as in PyTorch's conv2d; x: (batch, height, width, in) f32, f16, bf16, f64 or
// f8e4m3, any strides. The result is (batch, out_h, out_w, out), x's dtype, contiguous. Sums are of
// float or wider. Weights of q8_0 round x to 8 bits in groups of 32 channels, or to bf16. Throws
// invalid_argument where shapes do not fit or the kernel is larger than the padded image,
// unsupported for weights of q8_0 on devices without kernels for them.
Tensor image_conv(const Tensor& x, const ConvWeights& weights,
                  const ImageConvOptions& options = {});

// Padding of the same number of pixels on each side.
ImageConvOptions padded(int64_t pixels, Circular circular = {});

// x: (batch, spatial..., channels), normalised over the spatial axes and the channels of a group;
// weight, bias: (channels), x's dtype, or undefined. The result is contiguous.
Tensor image_group_norm(const Tensor& x, int32_t groups, const Tensor& weight, const Tensor& bias,
                        float eps, NormActivation activation = NormActivation::none);

}  // namespace rbee
