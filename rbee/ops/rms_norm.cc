#include "rbee/ops/checks.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/norm.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

void check_weight(const char* op, const Tensor& x, const Tensor& weight) {
  check_float(op, "x", x);
  check(x.rank() >= 1, op, "x is ", x, ", wanted at least one axis");
  check_like(op, "x", x, "weight", weight);
  check_shape(op, "weight", weight, Shape{x.dim(-1)});
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps) {
  constexpr const char* kOp = "rms_norm";
  check_weight(kOp, x, weight);
  Tensor y = empty_like(x);
  if (x.numel() == 0) return y;
  run(kOp, kernels(x).rms_norm, RmsNormArgs{x.view(), weight.view(), y.view(), eps}, x.stream());
  return y;
}

SumAndNorm add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps) {
  constexpr const char* kOp = "add_rms_norm";
  check_weight(kOp, x, weight);
  check_rank(kOp, "x", x, 2);
  check_like(kOp, "x", x, "residual", residual);
  check_shape(kOp, "residual", residual, x.shape());
  if (kernels(x).add_rms_norm.empty()) {
    Tensor sum = x + residual;
    return {.sum = sum, .norm = rms_norm(sum, weight, eps)};
  }
  SumAndNorm out{.sum = empty_like(x), .norm = empty_like(x)};
  if (x.numel() == 0) return out;
  run(kOp, kernels(x).add_rms_norm,
      AddRmsNormArgs{.x = x.view(),
                     .residual = residual.view(),
                     .weight = weight.view(),
                     .sum = out.sum.view(),
                     .y = out.norm.view(),
                     .eps = eps},
      x.stream());
  return out;
}

}  // namespace rbee
