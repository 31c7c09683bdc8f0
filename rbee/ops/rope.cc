#include "rbee/ops/rope.h"

#include "rbee/ops/attention_checks.h"
#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

constexpr const char* kOp = "rope";

void check_tables(const char* op, const Tensor& x, const Tensor& cos, const Tensor& sin) {
  check_float(op, "x", x);
  for (const auto& [name, table] : {std::pair{"cos", &cos}, std::pair{"sin", &sin}}) {
    check_same_device(op, "x", x, name, *table);
    check_rank(op, name, *table, 2);
    check(table->dtype() == DType::f32, op, name, " is ", *table, ", wanted f32");
  }
  check_shape(op, "sin", sin, cos.shape());
  check(2 * cos.dim(1) <= x.dim(-1), op, "cos is ", cos, ": twice its ", cos.dim(1),
        " columns exceed the heads of x, ", x);
}

// x, y: (batch, heads, time, head_dim) views
void rotate(const View& x, const Tensor& cos, const Tensor& sin, const View& positions,
            const View& y, RopeLayout layout, Stream& stream) {
  if (x.numel() == 0) return;
  run(kOp, cos.device().kernels().rope,
      RopeArgs{.x = x,
               .cos = cos.view(),
               .sin = sin.view(),
               .positions = positions,
               .y = y,
               .layout = layout},
      stream);
}

// Row of the tables = index along `time_axis` of x: (batch, heads, time, head_dim) in some order.
Tensor rope_by_time(const Tensor& x, const Tensor& cos, const Tensor& sin, RopeLayout layout,
                    int time_axis) {
  check_tables(kOp, x, cos, sin);
  check_rank(kOp, "x", x, 4);
  check(cos.dim(0) >= x.dim(time_axis), kOp, "cos is ", cos, ", x is ", x, " with ",
        x.dim(time_axis), " positions");
  Tensor y = empty_like(x);
  const auto bhtd = [&](const Tensor& t) {
    return (time_axis == 2 ? t : t.transpose(Axis{1}, Axis{2})).view();
  };
  rotate(bhtd(x), cos, sin, View{}, bhtd(y), layout, x.stream());
  return y;
}

}  // namespace

void check_rotation(const char* op, const Tensor& x, const Tensor& cos, const Tensor& sin,
                    const Tensor& positions) {
  check_tables(op, x, cos, sin);
  check_rank(op, "x", x, 3);
  check_same_device(op, "x", x, "positions", positions);
  check(positions.dtype() == DType::i32, op, "positions are ", positions, ", wanted i32");
  check_shape(op, "positions", positions, Shape{x.dim(0)});
  if (x.device().host_accessible()) {
    for (int32_t position : positions.to_host<int32_t>()) {
      check(position >= 0 && position < cos.dim(0), op, "position ", position,
            " is outside of 0 to ", cos.dim(0) - 1);
    }
  }
}

Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions,
            RopeLayout layout) {
  check_rotation(kOp, x, cos, sin, positions);
  Tensor y = empty_like(x);
  // (tokens, heads, head_dim) as one sequence: (1, heads, tokens, head_dim)
  const auto bhtd = [](const Tensor& t) {
    return t.transpose(Axis{0}, Axis{1}).unsqueeze(Axis{0}).view();
  };
  rotate(bhtd(x), cos, sin, positions.unsqueeze(Axis{0}).view(), bhtd(y), layout, x.stream());
  return y;
}

Tensor rope_half(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  return rope_by_time(x, cos, sin, RopeLayout::half, 2);
}

Tensor rope_interleaved(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  return rope_by_time(x, cos, sin, RopeLayout::interleaved, 2);
}

Tensor rope_thd(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  return rope_by_time(x, cos, sin, RopeLayout::half, 1);
}

}  // namespace rbee
