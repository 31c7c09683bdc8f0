#include "rbee/ops/upsample.h"

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

// The product of an index and a size stays far from the limits of 64 bits.
constexpr int64_t kLargest = int64_t{1} << 30;

void check_sizes(const char* op, const char* name, int64_t in, int64_t out) {
  check(in >= 1 && in <= kLargest, op, "the input's ", name, " is ", in, ", wanted 1 to ",
        kLargest);
  check(out >= 1 && out <= kLargest, op, "the result's ", name, " is ", out, ", wanted 1 to ",
        kLargest);
}

Tensor resize(const char* op, const Tensor& x, const Shape& shape, const UpsampleArgs& wanted) {
  Tensor y = empty(shape, x.dtype(), x.device());
  UpsampleArgs args = wanted;
  args.x = x.view();
  args.y = y.view();
  run(op, kernels(x).upsample, args, x.stream());
  return y;
}

}  // namespace

Tensor upsample_nearest1d(const Tensor& x, int64_t out_length) {
  constexpr const char* kOp = "upsample_nearest1d";
  check_plain(kOp, "x", x);
  check_rank(kOp, "x", x, 3);
  const auto [batch, channels, length] = x.dims<3>();
  check_sizes(kOp, "length", length, out_length);
  return resize(kOp, x, {batch, channels, out_length}, {.mode = UpsampleMode::nearest});
}

Tensor upsample_nearest2d(const Tensor& x, int64_t out_height, int64_t out_width) {
  constexpr const char* kOp = "upsample_nearest2d";
  check_plain(kOp, "x", x);
  check_rank(kOp, "x", x, 4);
  const auto [batch, channels, height, width] = x.dims<4>();
  check_sizes(kOp, "height", height, out_height);
  check_sizes(kOp, "width", width, out_width);
  return resize(kOp, x, {batch, channels, out_height, out_width}, {.mode = UpsampleMode::nearest});
}

Tensor upsample_bilinear2d(const Tensor& x, int64_t out_height, int64_t out_width,
                           Corners corners) {
  constexpr const char* kOp = "upsample_bilinear2d";
  check_float(kOp, "x", x);
  check_rank(kOp, "x", x, 4);
  const auto [batch, channels, height, width] = x.dims<4>();
  check_sizes(kOp, "height", height, out_height);
  check_sizes(kOp, "width", width, out_width);
  return resize(kOp, x, {batch, channels, out_height, out_width},
                {.mode = UpsampleMode::bilinear, .align_corners = corners == Corners::aligned});
}

}  // namespace rbee
