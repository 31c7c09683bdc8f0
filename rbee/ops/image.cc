#include "rbee/ops/image.h"

#include <algorithm>
#include <array>

#include "rbee/ops/checks.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/linear.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

constexpr const char* kConv = "image_conv";
constexpr const char* kNorm = "image_group_norm";

// Products of these stay far from the limits of 64 bits.
constexpr int64_t kLargest = int64_t{1} << 24;

int64_t out_size(const char* axis, int64_t size, int64_t kernel, int64_t before, int64_t after,
                 int64_t stride) {
  check(stride >= 1 && stride <= kLargest, kConv, "the stride is ", stride, ", wanted 1 to ",
        kLargest);
  check(size <= kLargest, kConv, "the image's ", axis, " is ", size, ", wanted up to ", kLargest);
  for (const int64_t padding : {before, after}) {
    check(padding >= 0 && padding <= kLargest, kConv, "a padding along ", axis, " is ", padding,
          ", wanted 0 to ", kLargest);
  }
  const int64_t padded_size = size + before + after;
  check(kernel >= 1 && kernel <= padded_size, kConv, "the kernel's ", axis, " is ", kernel,
        ", the padded image has ", padded_size);
  return (padded_size - kernel) / stride + 1;
}

void check_weights(const Tensor& x, const ConvWeights& weights) {
  const Tensor& weight = weights.weight;
  check_same_device(kConv, "x", x, "weight", weight);
  check_rank(kConv, "weight", weight, 4);
  check(is_float(weight.dtype()) || weight.dtype() == DType::q8_0, kConv, "weight is ", weight,
        ", not a float type or q8_0");
  check(weight.dim(3) == x.dim(3), kConv, "x is ", x, ", weight is ", weight,
        ": their last sizes differ (pack_conv_weight moves the channels there)");
  check(weight.contiguous(), kConv, "weight is ", weight, " and not contiguous");
  if (!weights.bias.defined()) return;
  check_like(kConv, "x", x, "bias", weights.bias);
  check_shape(kConv, "bias", weights.bias, {weight.dim(0)});
}

void check_addend(const char* name, const Tensor& x, const Tensor& addend, const Shape& shape) {
  if (!addend.defined()) return;
  check_like(kConv, "x", x, name, addend);
  check_shape(kConv, name, addend, shape);
}

// x as (batch, pixels, channels); copied if it has gaps.
Tensor as_pixels(const Tensor& x) {
  if (x.rank() == 3) return x;
  const Tensor whole = contiguous(x);
  const int64_t batch = x.dim(0), channels = x.dim(-1);
  int64_t pixels = 1;
  for (int i = 1; i + 1 < x.rank(); ++i) pixels *= x.dim(i);
  return whole.reshape({batch, pixels, channels});
}

void check_vector(const char* name, const Tensor& x, const Tensor& vector) {
  if (!vector.defined()) return;
  check_like(kNorm, "x", x, name, vector);
  check_shape(kNorm, name, vector, {x.dim(-1)});
}

// An axis with its padding added to x itself.
struct Ring {
  Tensor x;
  int64_t surplus = 0;  // pixels before those that were wanted; x is enlarged after it was padded
};

Ring ring_of(const Tensor& x, Axis axis, int64_t before, int64_t after, int64_t scale) {
  const int64_t size = x.dim(axis.index);
  const int64_t first = (before + scale - 1) / scale, last = (after + scale - 1) / scale;
  check(first <= size && last <= size, kConv, "a circular padding of ", std::max(before, after),
        " pixels is larger than x, ", x);
  std::vector<Tensor> parts;
  if (first > 0) parts.push_back(x.slice(axis, size - first, first));
  parts.push_back(x);
  if (last > 0) parts.push_back(x.slice(axis, 0, last));
  return {parts.size() > 1 ? concat(parts, axis) : x, first * scale - before};
}

// `wanted`: height and width of the result.
Tensor circular_conv(const Tensor& x, const ConvWeights& weights, ImageConvOptions options,
                     std::array<int64_t, 2> wanted) {
  const int64_t scale = options.upsample ? 2 : 1;
  Ring ring{x};
  int64_t top = 0, left = 0;
  if (options.circular.y) {
    ring = ring_of(ring.x, Axis{1}, options.pad_top, options.pad_bottom, scale);
    top = ring.surplus;
    options.pad_top = options.pad_bottom = 0;
  }
  if (options.circular.x) {
    ring = ring_of(ring.x, Axis{2}, options.pad_left, options.pad_right, scale);
    left = ring.surplus;
    options.pad_left = options.pad_right = 0;
  }
  options.circular = {};
  const bool whole = !options.upsample;
  check(whole || (!options.residual.defined() && options.stride == 1), kConv,
        "a circular padding of an enlarged x goes with neither a residual nor a stride");
  Tensor y = image_conv(ring.x, weights, options);
  if (whole) return y;
  return contiguous(y.slice(Axis{1}, top, wanted[0]).slice(Axis{2}, left, wanted[1]));
}

}  // namespace

Tensor pack_conv_weight(const Tensor& weight) {
  constexpr const char* kOp = "pack_conv_weight";
  check_plain(kOp, "weight", weight);
  check_float(kOp, "weight", weight);
  check_rank(kOp, "weight", weight, 4);
  return pack_channels_last(contiguous(weight.permute({0, 2, 3, 1})));
}

Tensor pack_channels_last(const Tensor& weight) {
  constexpr const char* kOp = "pack_channels_last";
  check_rank(kOp, "weight", weight, 4);
  check(weight.packing() == 0 && weight.contiguous(), kOp, "weight is ", weight,
        ", wanted contiguous and not packed");
  check(is_float(weight.dtype()) || weight.dtype() == DType::q8_0, kOp, "weight is ", weight,
        ", not a float type or q8_0");
  const int64_t depth = weight.dim(1) * weight.dim(2) * weight.dim(3);
  const Tensor packed = pack_weight(weight.reshape({weight.dim(0), depth}));
  View view = weight.view();
  view.data = packed.view().data;
  view.packing = packed.packing();
  return Tensor::from_buffer(packed.buffer(), view);
}

ImageConvOptions padded(int64_t pixels, Circular circular) {
  return {.pad_top = pixels,
          .pad_left = pixels,
          .pad_bottom = pixels,
          .pad_right = pixels,
          .circular = circular};
}

Tensor image_conv(const Tensor& x, const ConvWeights& weights, const ImageConvOptions& options) {
  check_float(kConv, "x", x);
  check_plain(kConv, "x", x);
  check_rank(kConv, "x", x, 4);
  check_weights(x, weights);
  const Tensor& weight = weights.weight;
  const int64_t scale = options.upsample ? 2 : 1;
  const int64_t height = out_size("height", scale * x.dim(1), weight.dim(1), options.pad_top,
                                  options.pad_bottom, options.stride);
  const int64_t width = out_size("width", scale * x.dim(2), weight.dim(2), options.pad_left,
                                 options.pad_right, options.stride);
  const int64_t batch = x.dim(0), out = weight.dim(0);
  if (options.circular.any()) return circular_conv(x, weights, options, {height, width});
  check_addend("channel_add", x, options.channel_add, {batch, out});
  check_addend("residual", x, options.residual, {batch, height, width, out});
  Tensor y = empty({batch, height, width, out}, x.dtype(), x.device());
  const ImageConvArgs args{.x = x.view(),
                           .weight = weight.view(),
                           .bias = view_or_absent(weights.bias),
                           .channel_add = view_or_absent(options.channel_add),
                           .residual = view_or_absent(options.residual),
                           .y = y.view(),
                           .stride = options.stride,
                           .pad_top = options.pad_top,
                           .pad_left = options.pad_left,
                           .upsample = options.upsample};
  run(kConv, kernels(x).image_conv, args, x.stream());
  return y;
}

Tensor image_group_norm(const Tensor& x, int32_t groups, const Tensor& weight, const Tensor& bias,
                        float eps, NormActivation activation) {
  check_float(kNorm, "x", x);
  check_plain(kNorm, "x", x);
  check(x.rank() >= 2, kNorm, "x is ", x, ", wanted (batch, spatial..., channels)");
  check(groups >= 1 && x.dim(-1) % groups == 0, kNorm, "x is ", x, ", its channels do not make ",
        groups, " equal groups");
  check_vector("weight", x, weight);
  check_vector("bias", x, bias);
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  const Tensor pixels = as_pixels(x);
  const ImageGroupNormArgs args{.x = pixels.view(),
                                .weight = view_or_absent(weight),
                                .bias = view_or_absent(bias),
                                .y = y.reshape(pixels.shape()).view(),
                                .groups = groups,
                                .eps = eps,
                                .activation = activation};
  run(kNorm, kernels(x).image_group_norm, args, x.stream());
  return y;
}

}  // namespace rbee
