#include "backends/gpu/ops/conv.h"

#include <numeric>

#include "backends/gpu/ops/planes.h"

namespace rbee::gpu {
namespace {

using shared::ConvAxis;
using shared::ConvParams;

// Common to both directions. `outs`: the weight's axis of output channels.
ConvParams conv_params(const View& x, const View& weight, const View& bias, const View& y,
                       int64_t groups, int outs) {
  const int ins = 1 - outs;
  const int64_t group_out = y.size(1) / groups;
  const int64_t group_in = x.size(1) / groups;
  ConvParams params{};
  params.x = x.data;
  params.weight = weight.data;
  params.bias = bias.data;
  params.y = y.data;
  copy_strides(params.x_strides, x);
  copy_strides(params.y_strides, y);
  params.weight_group = (outs == 0 ? group_out : group_in) * weight.stride(0);
  params.weight_out = weight.stride(outs);
  params.weight_in = weight.stride(ins);
  params.weight_row = weight.stride(2);
  params.weight_column = weight.stride(3);
  params.bias_step = bias ? bias.stride(0) : 0;
  params.count = y.numel();
  params.out_width = shared::make_divider(static_cast<uint32_t>(y.size(3)));
  params.out_height = shared::make_divider(static_cast<uint32_t>(y.size(2)));
  params.out_channels = shared::make_divider(static_cast<uint32_t>(y.size(1)));
  params.group_out = shared::make_divider(static_cast<uint32_t>(group_out));
  params.group_in = static_cast<int32_t>(group_in);
  return params;
}

// Taps of a transposed convolution meet input pixels only if the stride divides the distance:
// every (stride / gcd)-th tap does, each (dilation / gcd) pixels before the last one.
ConvAxis transposed(ConvAxis axis) {
  const int64_t common = std::gcd(axis.stride, axis.dilation);
  axis.tap_step = axis.stride / common;
  axis.from_step = -axis.dilation / common;
  return axis;
}

void start(const char* op, DType dtype, const ConvParams& params, Stream& stream) {
  launch_planes(stream, op, "conv_direct", KernelName("conv_direct", dtype), params);
}

void direct(const char* op, const Conv2dArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  ConvParams params = conv_params(args.x, args.weight, args.bias, args.y, args.groups, 0);
  params.height = {args.x.size(2), args.weight.size(2), args.stride_h,
                   args.padding_h, args.dilation_h,     1,
                   args.dilation_h};
  params.width = {args.x.size(3), args.weight.size(3), args.stride_w,
                  args.padding_w, args.dilation_w,     1,
                  args.dilation_w};
  start(op, args.x.dtype, params, stream);
}

void run_conv2d(const Conv2dArgs& args, Stream& stream) {
  direct("conv2d", args, stream);
}

void run_conv1d(const Conv1dArgs& args, Stream& stream) {
  direct("conv1d", as_planes(args), stream);
}

void direct_transposed(const char* op, const ConvTranspose2dArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  ConvParams params = conv_params(args.x, args.weight, args.bias, args.y, args.groups, 1);
  params.height = transposed(
      {args.x.size(2), args.weight.size(2), args.stride_h, args.padding_h, args.dilation_h, 0, 0});
  params.width = transposed(
      {args.x.size(3), args.weight.size(3), args.stride_w, args.padding_w, args.dilation_w, 0, 0});
  params.transposed = 1;
  start(op, args.x.dtype, params, stream);
}

void run_conv_transpose2d(const ConvTranspose2dArgs& args, Stream& stream) {
  direct_transposed("conv_transpose2d", args, stream);
}

void run_conv_transpose1d(const ConvTranspose1dArgs& args, Stream& stream) {
  direct_transposed("conv_transpose1d",
                    {.x = as_planes(args.x),
                     .weight = as_planes(args.weight),
                     .bias = args.bias,
                     .y = as_planes(args.y),
                     .stride_w = args.stride,
                     .padding_w = args.padding,
                     .output_padding_w = args.output_padding,
                     .dilation_w = args.dilation,
                     .groups = args.groups},
                    stream);
}

}  // namespace

const Impl<Conv1dArgs> conv1d_direct{"gpu", never_refuse, run_conv1d};
const Impl<Conv2dArgs> conv2d_direct{"gpu", never_refuse, run_conv2d};
const Impl<ConvTranspose1dArgs> conv_transpose1d{"gpu", never_refuse, run_conv_transpose1d};
const Impl<ConvTranspose2dArgs> conv_transpose2d{"gpu", never_refuse, run_conv_transpose2d};

}  // namespace rbee::gpu
