#include "rbee/ops/conv.h"

#include <algorithm>

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

constexpr Axis kBatch{0};
constexpr Axis kChannels{1};
constexpr Axis kLength{2};
constexpr Axis kHeight{2};
constexpr Axis kWidth{3};

// A convolution along one spatial axis.
struct Window {
  const char* name;
  int64_t size, kernel;
  int64_t stride, padding, dilation;
  int64_t output_padding = 0;
};

// Products of these stay far from the limits of 64 bits.
constexpr int64_t kLargest = int64_t{1} << 30;

void check_window(const char* op, const Window& w) {
  check(w.kernel >= 1 && w.kernel <= kLargest, op, "the kernel's ", w.name, " is ", w.kernel,
        ", wanted 1 to ", kLargest);
  check(w.size <= kLargest, op, "the input's ", w.name, " is ", w.size, ", wanted up to ",
        kLargest);
  check(w.stride >= 1 && w.stride <= kLargest, op, "the stride along ", w.name, " is ", w.stride,
        ", wanted 1 to ", kLargest);
  check(w.dilation >= 1 && w.dilation <= kLargest, op, "the dilation along ", w.name, " is ",
        w.dilation, ", wanted 1 to ", kLargest);
  check(w.padding >= 0 && w.padding <= kLargest, op, "the padding along ", w.name, " is ",
        w.padding, ", wanted 0 to ", kLargest);
}

int64_t conv_size(const char* op, const Window& w) {
  check_window(op, w);
  const int64_t padded = w.size + 2 * w.padding;
  const int64_t span = w.dilation * (w.kernel - 1) + 1;
  check(span <= padded, op, "the kernel spans ", span, " along ", w.name, ", the padded input has ",
        padded);
  return (padded - span) / w.stride + 1;
}

int64_t conv_transpose_size(const char* op, const Window& w) {
  check_window(op, w);
  check(w.output_padding >= 0 && w.output_padding < std::max(w.stride, w.dilation), op,
        "the output padding along ", w.name, " is ", w.output_padding,
        ", wanted less than the stride ", w.stride, " or the dilation ", w.dilation);
  const int64_t full = (w.size - 1) * w.stride + w.dilation * (w.kernel - 1) + w.output_padding + 1;
  check(w.size >= 1 && full > 2 * w.padding, op, "the padding ", w.padding, " along ", w.name,
        " leaves nothing of a result of ", full);
  return full - 2 * w.padding;
}

void check_operands(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    int rank) {
  check_plain(op, "x", x);
  check_rank(op, "x", x, rank);
  check_like(op, "x", x, "weight", weight);
  check_rank(op, "weight", weight, rank);
  if (bias.defined()) check_like(op, "x", x, "bias", bias);
}

// Result channels of a convolution whose weight is (out_channels, in_channels / groups, ...).
int64_t conv_channels(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      int64_t groups) {
  const int64_t in = x.dim(kChannels.index);
  const int64_t out = weight.dim(0);
  check(groups >= 1 && in % groups == 0 && out % groups == 0, op, groups, " groups do not divide ",
        in, " input and ", out, " output channels");
  check(weight.dim(1) == in / groups, op, "weight is ", weight, ", its second size should be ",
        in / groups, " for x ", x, " in ", groups, " groups");
  if (bias.defined()) check_shape(op, "bias", bias, {out});
  return out;
}

// The same for a weight of (in_channels, out_channels / groups, ...).
int64_t conv_transpose_channels(const char* op, const Tensor& x, const Tensor& weight,
                                const Tensor& bias, int64_t groups) {
  const int64_t in = x.dim(kChannels.index);
  check(groups >= 1 && in % groups == 0, op, groups, " groups do not divide ", in,
        " input channels");
  check(weight.dim(0) == in, op, "weight is ", weight, ", its first size should be ", in, " for x ",
        x);
  const int64_t out = weight.dim(1) * groups;
  if (bias.defined()) check_shape(op, "bias", bias, {out});
  return out;
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv1dOptions& options) {
  constexpr const char* kOp = "conv1d";
  check_operands(kOp, x, weight, bias, 3);
  const int64_t channels = conv_channels(kOp, x, weight, bias, options.groups);
  const int64_t length = conv_size(kOp, {.name = "length",
                                         .size = x.dim(kLength.index),
                                         .kernel = weight.dim(kLength.index),
                                         .stride = options.stride,
                                         .padding = options.padding,
                                         .dilation = options.dilation});
  Tensor y = empty({x.dim(kBatch.index), channels, length}, x.dtype(), x.device());
  const Conv1dArgs args{.x = x.view(),
                        .weight = weight.view(),
                        .bias = view_or_absent(bias),
                        .y = y.view(),
                        .stride = options.stride,
                        .padding = options.padding,
                        .dilation = options.dilation,
                        .groups = options.groups};
  run(kOp, kernels(x).conv1d, args, x.stream());
  return y;
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  constexpr const char* kOp = "conv2d";
  check_operands(kOp, x, weight, bias, 4);
  const int64_t channels = conv_channels(kOp, x, weight, bias, options.groups);
  const int64_t height = conv_size(kOp, {.name = "height",
                                         .size = x.dim(kHeight.index),
                                         .kernel = weight.dim(kHeight.index),
                                         .stride = options.stride_h,
                                         .padding = options.padding_h,
                                         .dilation = options.dilation_h});
  const int64_t width = conv_size(kOp, {.name = "width",
                                        .size = x.dim(kWidth.index),
                                        .kernel = weight.dim(kWidth.index),
                                        .stride = options.stride_w,
                                        .padding = options.padding_w,
                                        .dilation = options.dilation_w});
  Tensor y = empty({x.dim(kBatch.index), channels, height, width}, x.dtype(), x.device());
  const Conv2dArgs args{.x = x.view(),
                        .weight = weight.view(),
                        .bias = view_or_absent(bias),
                        .y = y.view(),
                        .stride_h = options.stride_h,
                        .stride_w = options.stride_w,
                        .padding_h = options.padding_h,
                        .padding_w = options.padding_w,
                        .dilation_h = options.dilation_h,
                        .dilation_w = options.dilation_w,
                        .groups = options.groups};
  run(kOp, kernels(x).conv2d, args, x.stream());
  return y;
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options) {
  constexpr const char* kOp = "conv_transpose1d";
  check_operands(kOp, x, weight, bias, 3);
  const int64_t channels = conv_transpose_channels(kOp, x, weight, bias, options.groups);
  const int64_t length = conv_transpose_size(kOp, {.name = "length",
                                                   .size = x.dim(kLength.index),
                                                   .kernel = weight.dim(kLength.index),
                                                   .stride = options.stride,
                                                   .padding = options.padding,
                                                   .dilation = options.dilation,
                                                   .output_padding = options.output_padding});
  Tensor y = empty({x.dim(kBatch.index), channels, length}, x.dtype(), x.device());
  const ConvTranspose1dArgs args{.x = x.view(),
                                 .weight = weight.view(),
                                 .bias = view_or_absent(bias),
                                 .y = y.view(),
                                 .stride = options.stride,
                                 .padding = options.padding,
                                 .output_padding = options.output_padding,
                                 .dilation = options.dilation,
                                 .groups = options.groups};
  run(kOp, kernels(x).conv_transpose1d, args, x.stream());
  return y;
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) {
  constexpr const char* kOp = "conv_transpose2d";
  check_operands(kOp, x, weight, bias, 4);
  const int64_t channels = conv_transpose_channels(kOp, x, weight, bias, options.groups);
  const int64_t height = conv_transpose_size(kOp, {.name = "height",
                                                   .size = x.dim(kHeight.index),
                                                   .kernel = weight.dim(kHeight.index),
                                                   .stride = options.stride_h,
                                                   .padding = options.padding_h,
                                                   .dilation = options.dilation_h,
                                                   .output_padding = options.output_padding_h});
  const int64_t width = conv_transpose_size(kOp, {.name = "width",
                                                  .size = x.dim(kWidth.index),
                                                  .kernel = weight.dim(kWidth.index),
                                                  .stride = options.stride_w,
                                                  .padding = options.padding_w,
                                                  .dilation = options.dilation_w,
                                                  .output_padding = options.output_padding_w});
  Tensor y = empty({x.dim(kBatch.index), channels, height, width}, x.dtype(), x.device());
  const ConvTranspose2dArgs args{.x = x.view(),
                                 .weight = weight.view(),
                                 .bias = view_or_absent(bias),
                                 .y = y.view(),
                                 .stride_h = options.stride_h,
                                 .stride_w = options.stride_w,
                                 .padding_h = options.padding_h,
                                 .padding_w = options.padding_w,
                                 .output_padding_h = options.output_padding_h,
                                 .output_padding_w = options.output_padding_w,
                                 .dilation_h = options.dilation_h,
                                 .dilation_w = options.dilation_w,
                                 .groups = options.groups};
  run(kOp, kernels(x).conv_transpose2d, args, x.stream());
  return y;
}

Tensor im2col(const Tensor& x, const Im2colOptions& options) {
  constexpr const char* kOp = "im2col";
  check_plain(kOp, "x", x);
  check_rank(kOp, "x", x, 4);
  const int64_t height = conv_size(kOp, {.name = "height",
                                         .size = x.dim(kHeight.index),
                                         .kernel = options.kernel_h,
                                         .stride = options.stride_h,
                                         .padding = options.padding_h,
                                         .dilation = options.dilation_h});
  const int64_t width = conv_size(kOp, {.name = "width",
                                        .size = x.dim(kWidth.index),
                                        .kernel = options.kernel_w,
                                        .stride = options.stride_w,
                                        .padding = options.padding_w,
                                        .dilation = options.dilation_w});
  const int64_t elements = x.dim(kChannels.index) * options.kernel_h * options.kernel_w;
  Tensor y = empty({x.dim(kBatch.index), height * width, elements}, x.dtype(), x.device());
  const Im2colArgs args{.x = x.view(),
                        .y = y.view(),
                        .kernel_h = options.kernel_h,
                        .kernel_w = options.kernel_w,
                        .stride_h = options.stride_h,
                        .stride_w = options.stride_w,
                        .padding_h = options.padding_h,
                        .padding_w = options.padding_w,
                        .dilation_h = options.dilation_h,
                        .dilation_w = options.dilation_w,
                        .out_w = width};
  run(kOp, kernels(x).im2col, args, x.stream());
  return y;
}

Tensor im2col1d(const Tensor& x, const Im2col1dOptions& options) {
  constexpr const char* kOp = "im2col1d";
  check_plain(kOp, "x", x);
  check_rank(kOp, "x", x, 3);
  const int64_t length = conv_size(kOp, {.name = "length",
                                         .size = x.dim(kLength.index),
                                         .kernel = options.kernel,
                                         .stride = options.stride,
                                         .padding = options.padding,
                                         .dilation = options.dilation});
  Tensor y = empty({x.dim(kBatch.index), length, x.dim(kChannels.index) * options.kernel},
                   x.dtype(), x.device());
  const Im2colArgs args{.x = x.view(),
                        .y = y.view(),
                        .kernel_w = options.kernel,
                        .stride_w = options.stride,
                        .padding_w = options.padding,
                        .dilation_w = options.dilation,
                        .out_w = length};
  run(kOp, kernels(x).im2col, args, x.stream());
  return y;
}

Tensor col2im1d(const Tensor& x, int64_t stride) {
  constexpr const char* kOp = "col2im1d";
  check_plain(kOp, "x", x);
  check_rank(kOp, "x", x, 4);
  const auto [batch, length, channels, kernel] = x.dims<4>();
  const int64_t out = conv_transpose_size(kOp, {.name = "length",
                                                .size = length,
                                                .kernel = kernel,
                                                .stride = stride,
                                                .padding = 0,
                                                .dilation = 1});
  Tensor y = empty({batch, channels, out}, x.dtype(), x.device());
  run(kOp, kernels(x).col2im1d, Col2im1dArgs{.x = x.view(), .y = y.view(), .stride = stride},
      x.stream());
  return y;
}

}  // namespace rbee
