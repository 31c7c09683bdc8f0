#pragma once
// Operations of image models: convolutions and group norms with the channels last, (batch, height,
// width, channels). A pixel is then a row of a matrix: linear layers and attention read the image
// reshaped to (batch, height * width, channels).

#include "backends/api/args_image.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

struct ConvWeights {
  Tensor weight;  // (out, kernel_h, kernel_w, in) as pack_conv_weight gives it
  Tensor bias;    // (out), x's dtype, or undefined
};

// Rewrites a checkpoint's weight, (out, in, kernel_h, kernel_w) in a plain float type, in the
// layout that this device's image_conv reads fastest, with shape (out, kernel_h, kernel_w, in).
// Call it once, at load.
Tensor pack_conv_weight(const Tensor& weight);
// The same for a weight (out, kernel_h, kernel_w, in) in a plain float type or q8_0.
Tensor pack_channels_last(const Tensor& weight);

// Axes of a picture that wrap around: padding there comes from the opposite edge, so that copies of
// the picture tile without a seam.
struct Circular {
  bool x = false, y = false;

  bool any() const { return x || y; }
};

struct ImageConvOptions {
  int64_t stride = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;  // pixels of zeros
  // x is read as if enlarged twice by nearest neighbour, before the padding.
  bool upsample = false;
  // Axes padded by wrapping instead of with zeros, by at most the image's size. Copies x. Cannot be
  // combined with both `upsample` and a residual.
  Circular circular;
  Tensor channel_add;  // (batch, out), x's dtype, added to every pixel, or undefined
  Tensor residual;     // (batch, out_h, out_w, out), x's dtype, added, or undefined
};

// Cross-correlation as in PyTorch's conv2d; x: (batch, height, width, in) f32, f16, bf16, f64 or
// f8e4m3, any strides. The result is (batch, out_h, out_w, out), x's dtype, contiguous. Sums are of
// float or wider. Weights of q8_0 round x to 8 bits in groups of 32 channels, or to bf16. Throws
// invalid_argument if shapes do not fit or the kernel is larger than the padded image, and
// unsupported for q8_0 weights if the device has no kernels for them.
Tensor image_conv(const Tensor& x, const ConvWeights& weights,
                  const ImageConvOptions& options = {});

// Options with the same padding on each side.
ImageConvOptions padded(int64_t pixels, Circular circular = {});

// x: (batch, spatial..., channels), normalised over the spatial axes and the channels of a group;
// weight, bias: (channels), x's dtype, or undefined. The result is contiguous.
Tensor image_group_norm(const Tensor& x, int32_t groups, const Tensor& weight, const Tensor& bias,
                        float eps, NormActivation activation = NormActivation::none);

}  // namespace rbee
