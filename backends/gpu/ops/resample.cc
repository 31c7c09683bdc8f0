#include "backends/gpu/ops/conv.h"
#include "backends/gpu/ops/planes.h"

namespace rbee::gpu {
namespace {

// The result's sizes, as both parameter structs hold them.
template <typename Params>
void set_result(Params& params, const View& x, const View& y) {
  params.x = x.data;
  params.y = y.data;
  copy_strides(params.x_strides, x);
  copy_strides(params.y_strides, y);
  params.count = y.numel();
  params.out_width = shared::make_divider(static_cast<uint32_t>(y.size(3)));
  params.out_height = shared::make_divider(static_cast<uint32_t>(y.size(2)));
  params.channels = shared::make_divider(static_cast<uint32_t>(y.size(1)));
}

void run_pool2d(const Pool2dArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  shared::PoolParams params{};
  set_result(params, args.x, args.y);
  params.kernel[0] = args.kernel_h;
  params.kernel[1] = args.kernel_w;
  params.stride[0] = args.stride_h;
  params.stride[1] = args.stride_w;
  const KernelName kernel("pool2d", args.x.dtype, args.op == PoolOp::avg ? "avg" : "max");
  launch_planes(stream, "pool2d", "resample", kernel, params);
}

const char* refuse_upsample(const UpsampleArgs& args) {
  return args.mode == UpsampleMode::bilinear && !is_float(args.x.dtype) ? "interpolates floats"
                                                                        : nullptr;
}

// Elements of one size move alike, whatever their type.
KernelName nearest_kernel(DType dtype) {
  constexpr const char* kNames[] = {"upsample_nearest_1", "upsample_nearest_2",
                                    "upsample_nearest_4", "upsample_nearest_8"};
  const int64_t bytes = info(dtype).block_bytes;
  return KernelName(kNames[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3]);
}

void run_upsample(const UpsampleArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  const View x = as_planes(args.x), y = as_planes(args.y);
  shared::UpsampleParams params{};
  set_result(params, x, y);
  for (int axis = 0; axis < 2; ++axis) {
    params.in[axis] = x.size(2 + axis);
    params.out[axis] = y.size(2 + axis);
  }
  params.align_corners = args.align_corners;
  const bool nearest = args.mode == UpsampleMode::nearest;
  launch_planes(stream, "upsample", "resample",
                nearest ? nearest_kernel(x.dtype) : KernelName("upsample", x.dtype, "bilinear"),
                params);
}

}  // namespace

const Impl<Pool2dArgs> pool2d{"gpu", never_refuse, run_pool2d};
const Impl<UpsampleArgs> upsample{"gpu", refuse_upsample, run_upsample};

}  // namespace rbee::gpu
