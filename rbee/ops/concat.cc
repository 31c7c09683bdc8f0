#include "rbee/ops/concat.h"

#include "rbee/ops/checks.h"
#include "rbee/ops/elementwise.h"

namespace rbee {
namespace {

constexpr const char* kOp = "concat";

Shape joined_shape(std::span<const Tensor> parts, int axis) {
  Shape shape = parts.front().shape();
  shape[axis] = 0;
  for (const Tensor& part : parts) {
    check_same_device(kOp, "the first part", parts.front(), "a part", part);
    check(part.dtype() == parts.front().dtype() && part.rank() == shape.rank(), kOp,
          "the first part is ", parts.front(), ", another is ", part);
    Shape rest = part.shape();
    rest[axis] = shape[axis];
    check(rest == shape, kOp, "the first part is ", parts.front(), ", another is ", part,
          ": they differ along another axis than ", axis);
    shape[axis] += part.dim(axis);
  }
  return shape;
}

}  // namespace

Tensor concat(std::span<const Tensor> parts, Axis axis) {
  check(!parts.empty(), kOp, "there are no parts");
  check(parts.front().defined(), kOp, "the first part is undefined");
  const int index = axis.resolve(parts.front().rank());
  check(index >= 0, kOp, "axis ", axis.index, " is not one of ", parts.front());
  Tensor y = empty(joined_shape(parts, index), parts.front().dtype(), parts.front().device());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    Tensor place = y.slice(Axis{index}, at, part.dim(index));
    copy_(place, part);
    at += part.dim(index);
  }
  return y;
}

Tensor concat(std::initializer_list<Tensor> parts, Axis axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}

}  // namespace rbee
