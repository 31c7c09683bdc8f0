#include <limits>

#include "backends/gpu/ops/conv.h"
#include "backends/gpu/ops/planes.h"
#include "backends/gpu/product_tiles.h"

namespace rbee::gpu {
namespace {

// With fewer, most of a 64 x 64 tile would be empty.
constexpr int64_t kFewestChannels = 8;  // of a group's result
constexpr int64_t kFewestResults = 1024;

int64_t pixels_of(const Conv2dArgs& args) {
  return args.y.size(0) * args.y.size(2) * args.y.size(3);
}

int64_t depth_of(const Conv2dArgs& args) {
  return args.weight.size(1) * args.weight.size(2) * args.weight.size(3);
}

// Kernels that are contiguous, whatever the stride between output channels.
bool contiguous_kernels(View weight) {
  weight.sizes[0] = 1;
  return weight.contiguous();
}

// Positions in the padded input, as kernels compute them, fit 32 bits.
bool small_axis(int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  constexpr int64_t kMost = int64_t{1} << 30;
  return stride < kMost && padding < kMost && dilation < kMost && out * stride < kMost &&
         kernel * dilation < kMost;
}

const char* refuse_conv2d(const Conv2dArgs& args) {
  const DType dtype = args.x.dtype;
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) {
    return "takes f32, f16 and bf16";
  }
  if (!contiguous_kernels(args.weight)) return "takes contiguous kernels";
  const int64_t group_out = args.weight.size(0) / args.groups;
  if (group_out < kFewestChannels || pixels_of(args) * group_out < kFewestResults) {
    return "takes more channels or pixels";
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMostGroups = 65535;  // a grid's second axis
  if (args.groups > kMostGroups || pixels_of(args) > kMost - 64 || depth_of(args) > kMost - 64 ||
      !small_axis(args.y.size(2), args.weight.size(2), args.stride_h, args.padding_h,
                  args.dilation_h) ||
      !small_axis(args.y.size(3), args.weight.size(3), args.stride_w, args.padding_w,
                  args.dilation_w)) {
    return "counts in 32 bits";
  }
  return nullptr;
}

void conv_tile(const char* op, const Conv2dArgs& args, Stream& stream) {
  const View &x = args.x, &weight = args.weight, &y = args.y;
  const auto narrow = [](int64_t n) { return static_cast<int32_t>(n); };
  const auto divider = [](int64_t n) { return shared::make_divider(static_cast<uint32_t>(n)); };
  const int64_t group_out = weight.size(0) / args.groups;
  shared::ConvTileParams params{.x = x.data,
                                .weight = weight.data,
                                .bias = args.bias.data,
                                .y = y.data,
                                .x_strides = {},
                                .y_strides = {},
                                .weight_out = weight.stride(0),
                                .bias_step = args.bias ? args.bias.stride(0) : 0,
                                .group_in = narrow(weight.size(1)),
                                .group_out = narrow(group_out),
                                .pixels = narrow(pixels_of(args)),
                                .depth = narrow(depth_of(args)),
                                .size = {narrow(x.size(2)), narrow(x.size(3))},
                                .stride = {narrow(args.stride_h), narrow(args.stride_w)},
                                .padding = {narrow(args.padding_h), narrow(args.padding_w)},
                                .dilation = {narrow(args.dilation_h), narrow(args.dilation_w)},
                                .out_width = divider(y.size(3)),
                                .out_height = divider(y.size(2)),
                                .kernel_width = divider(weight.size(3)),
                                .kernel_height = divider(weight.size(2))};
  copy_strides(params.x_strides, x);
  copy_strides(params.y_strides, y);
  launch(stream,
         {.op = op,
          .family = "conv_tile",
          .kernel = KernelName("conv_tile", x.dtype),
          .grid = {.x = static_cast<uint32_t>(product_tiles(group_out, params.pixels)),
                   .y = static_cast<uint32_t>(args.groups)},
          .threads = kProductThreads},
         params);
}

void run_conv2d(const Conv2dArgs& args, Stream& stream) {
  conv_tile("conv2d", args, stream);
}

const char* refuse_conv1d(const Conv1dArgs& args) {
  return refuse_conv2d(as_planes(args));
}

void run_conv1d(const Conv1dArgs& args, Stream& stream) {
  conv_tile("conv1d", as_planes(args), stream);
}

}  // namespace

const Impl<Conv1dArgs> conv1d_tile{"tile", refuse_conv1d, run_conv1d};
const Impl<Conv2dArgs> conv2d_tile{"tile", refuse_conv2d, run_conv2d};

}  // namespace rbee::gpu
