#include "rbee/ops/reduce.h"

#include <limits>

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

bool finds_index(ReduceOp op) {
  return op == ReduceOp::argmin || op == ReduceOp::argmax;
}

void check_index(const Tensor& x, std::span<const Axis> axes) {
  check(axes.size() == 1, "reduce", "argmin and argmax take 1 axis, not ", axes.size(), "; x is ",
        x);
  const int64_t size = x.dim(axes[0].index);
  constexpr int64_t kLimit = std::numeric_limits<uint32_t>::max();
  check(size <= kLimit, "reduce", "axis ", axes[0].index, " of ", x, " has ", size,
        " elements, more than a u32 index reaches, ", kLimit);
}

}  // namespace

Tensor reduce(ReduceOp op, const Tensor& x, std::span<const Axis> axes) {
  check_plain("reduce", "x", x);
  Shape shape = x.shape();
  uint32_t mask = 0;
  int64_t reduced = 1;
  for (const Axis axis : axes) {
    const int i = check_axis("reduce", "x", x, axis);
    check((mask >> i & 1) == 0, "reduce", "axis ", i, " of ", x, " is named twice");
    mask |= 1u << i;
    reduced *= x.dim(i);
    shape[i] = 1;
  }
  check(op == ReduceOp::sum || reduced > 0 || numel(shape) == 0, "reduce", "x is ", x,
        ", no elements to choose from");
  if (finds_index(op)) check_index(x, axes);
  Tensor y = empty(shape, finds_index(op) ? DType::u32 : x.dtype(), x.device());
  const ReduceArgs args{.op = op, .axes = mask, .x = x.view(), .y = y.view()};
  run("reduce", kernels(x).reduce, args, x.stream());
  return y;
}

Tensor reduce(ReduceOp op, const Tensor& x, Axis axis) {
  return reduce(op, x, std::span<const Axis>(&axis, 1));
}

}  // namespace rbee
