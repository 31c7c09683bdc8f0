#include "rbee/ops/pool.h"

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

constexpr const char* kOp = "pool2d";

int64_t pooled_size(const char* name, int64_t size, int64_t kernel, int64_t stride) {
  check(kernel >= 1 && kernel <= size, kOp, "the window's ", name, " is ", kernel, ", x has ",
        size);
  check(stride >= 1, kOp, "the stride along ", name, " is ", stride, ", wanted at least 1");
  return (size - kernel) / stride + 1;
}

}  // namespace

Tensor pool2d(PoolOp op, const Tensor& x, const Pool2dOptions& options) {
  check_plain(kOp, "x", x);
  check_rank(kOp, "x", x, 4);
  const auto [batch, channels, height, width] = x.dims<4>();
  const int64_t out_height = pooled_size("height", height, options.kernel_h, options.stride_h);
  const int64_t out_width = pooled_size("width", width, options.kernel_w, options.stride_w);
  Tensor y = empty({batch, channels, out_height, out_width}, x.dtype(), x.device());
  const Pool2dArgs args{.op = op,
                        .x = x.view(),
                        .y = y.view(),
                        .kernel_h = options.kernel_h,
                        .kernel_w = options.kernel_w,
                        .stride_h = options.stride_h,
                        .stride_w = options.stride_w};
  run(kOp, kernels(x).pool2d, args, x.stream());
  return y;
}

}  // namespace rbee
