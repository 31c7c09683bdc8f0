#include "rbee/ops/collective.h"

#include "rbee/ops/checks.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

void check_operand(const char* op, const char* name, const Tensor& x) {
  check_plain(op, name, x);
  check(x.contiguous(), op, name, " is ", x, " with gaps, wanted contiguous");
}

}  // namespace

Tensor all_reduce(const Tensor& x, const GroupView& group) {
  if (group.alone()) return x;
  constexpr const char* kOp = "all_reduce";
  check_operand(kOp, "x", x);
  Tensor y = empty_like(x);
  if (x.numel() == 0) return y;
  run(kOp, kernels(x).all_reduce, AllReduceArgs{x.view(), y.view(), group}, x.stream());
  return y;
}

SumAndNorm reduce_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps,
                       const GroupView& group) {
  constexpr const char* kOp = "reduce_norm";
  check_float(kOp, "x", x);
  check_rank(kOp, "x", x, 2);
  check_operand(kOp, "x", x);
  check_operand(kOp, "residual", residual);
  check_like(kOp, "x", x, "residual", residual);
  check_like(kOp, "x", x, "weight", weight);
  check_shape(kOp, "residual", residual, x.shape());
  check_shape(kOp, "weight", weight, Shape{x.dim(1)});
  if (!group.alone() && x.numel() > 0) {
    SumAndNorm out{.sum = empty_like(x), .norm = empty_like(x)};
    const ReduceNormArgs args{.x = x.view(),
                              .residual = residual.view(),
                              .weight = weight.view(),
                              .sum = out.sum.view(),
                              .y = out.norm.view(),
                              .eps = eps,
                              .group = group};
    if (try_run(kOp, kernels(x).reduce_norm, args, x.stream())) return out;
  }
  return add_rms_norm(all_reduce(x, group), residual, weight, eps);
}

Tensor all_gather(const Tensor& x, const GroupView& group) {
  constexpr const char* kOp = "all_gather";
  check_operand(kOp, "x", x);
  check(x.rank() < kMaxRank, kOp, "x is ", x, ", wanted at most ", kMaxRank - 1, " axes");
  if (group.alone()) return x.unsqueeze(Axis{0});
  Shape shape{group.ranks};
  for (int axis = 0; axis < x.rank(); ++axis) shape.push_back(x.dim(axis));
  Tensor y = empty({group.ranks, x.numel()}, x.dtype(), x.device());
  if (x.numel() > 0) {
    run(kOp, kernels(x).all_gather, AllGatherArgs{x.view(), y.view(), group}, x.stream());
  }
  return y.reshape(shape);
}

void broadcast_(const Tensor& x, int root, const GroupView& group) {
  constexpr const char* kOp = "broadcast";
  check_operand(kOp, "x", x);
  check(root >= 0 && root < group.ranks, kOp, "root is ", root, ", wanted 0 to ", group.ranks - 1);
  if (group.alone() || x.numel() == 0) return;
  run(kOp, kernels(x).broadcast, BroadcastArgs{x.view(), root, group}, x.stream());
}

}  // namespace rbee
