// layer_norm and group_norm of rbee/ops/norm.h.
#include "rbee/ops/checks.h"
#include "rbee/ops/norm.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

void check_vector(const char* op, const char* name, const Tensor& x, const Tensor& vector,
                  int64_t size) {
  if (!vector.defined()) return;
  check_like(op, "x", x, name, vector);
  check_shape(op, name, vector, {size});
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps) {
  check_float("layer_norm", "x", x);
  check(x.rank() >= 1, "layer_norm", "x is ", x, ", wanted at least 1 axis");
  check_vector("layer_norm", "weight", x, weight, x.dim(-1));
  check_vector("layer_norm", "bias", x, bias, x.dim(-1));
  Tensor y = empty_like(x);
  const LayerNormArgs args{.x = x.view(),
                           .weight = view_or_absent(weight),
                           .bias = view_or_absent(bias),
                           .y = y.view(),
                           .eps = eps};
  run("layer_norm", kernels(x).layer_norm, args, x.stream());
  return y;
}

Tensor group_norm(const Tensor& x, int32_t groups, const Tensor& weight, const Tensor& bias,
                  float eps) {
  check_float("group_norm", "x", x);
  check(x.rank() >= 2, "group_norm", "x is ", x, ", wanted (batch, channels, spatial...)");
  check(groups >= 1 && x.dim(1) % groups == 0, "group_norm", "x is ", x, ", its channels do not ",
        "make ", groups, " equal groups");
  check_vector("group_norm", "weight", x, weight, x.dim(1));
  check_vector("group_norm", "bias", x, bias, x.dim(1));
  Tensor y = empty_like(x);
  const GroupNormArgs args{.x = x.view(),
                           .weight = view_or_absent(weight),
                           .bias = view_or_absent(bias),
                           .y = y.view(),
                           .groups = groups,
                           .eps = eps};
  run("group_norm", kernels(x).group_norm, args, x.stream());
  return y;
}

}  // namespace rbee
