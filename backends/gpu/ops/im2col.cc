#include "backends/gpu/loop.h"
#include "backends/gpu/ops/conv.h"
#include "backends/gpu/ops/planes.h"
#include "backends/shared/im2col_params.h"

namespace rbee::gpu {
namespace {

shared::Divider divider(int64_t size) {
  return shared::make_divider(static_cast<uint32_t>(size));
}

void run_im2col(const Im2colArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  const View x = as_planes(args.x);
  shared::Im2colParams params{.x = x.data,
                              .y = args.y.data,
                              .x_strides = {},
                              .y_strides = {},
                              .size = {x.size(2), x.size(3)},
                              .stride = {args.stride_h, args.stride_w},
                              .padding = {args.padding_h, args.padding_w},
                              .dilation = {args.dilation_h, args.dilation_w},
                              .count = args.y.numel(),
                              .first = 0,
                              .kernel_width = divider(args.kernel_w),
                              .kernel_height = divider(args.kernel_h),
                              .channels = divider(x.size(1)),
                              .out_width = divider(args.out_w),
                              .out_height = divider(args.y.size(1) / args.out_w)};
  copy_strides(params.x_strides, x);
  std::copy_n(args.y.strides, 3, params.y_strides);
  launch_planes(stream, "im2col", "im2col", sized("im2col", info(x.dtype).block_bytes), params);
}

void run_col2im1d(const Col2im1dArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  shared::Col2im1dParams params{.x = args.x.data,
                                .y = args.y.data,
                                .x_strides = {},
                                .y_strides = {},
                                .length = args.x.size(1),
                                .kernel = args.x.size(3),
                                .stride = args.stride,
                                .count = args.y.numel(),
                                .first = 0,
                                .out_length = divider(args.y.size(2)),
                                .channels = divider(args.y.size(1))};
  copy_strides(params.x_strides, args.x);
  std::copy_n(args.y.strides, 3, params.y_strides);
  launch_planes(stream, "col2im1d", "im2col", KernelName("col2im1d", args.y.dtype), params);
}

}  // namespace

const Impl<Im2colArgs> im2col{"gpu", never_refuse, run_im2col};
const Impl<Col2im1dArgs> col2im1d{"gpu", never_refuse, run_col2im1d};

}  // namespace rbee::gpu
