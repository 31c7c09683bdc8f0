#include "rbee/ops/elementwise.h"

#include <array>

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

bool has_integer_form(UnaryOp op) {
  return op == UnaryOp::abs || op == UnaryOp::neg || op == UnaryOp::relu || op == UnaryOp::sign ||
         op == UnaryOp::sqr;
}

const char* name(UnaryOp op) {
  constexpr auto kNames = std::to_array<const char*>(
      {"abs",      "ceil",    "cos",  "elu",     "erf",  "exp",        "floor", "gelu",
       "gelu_erf", "log",     "neg",  "normcdf", "powf", "quick_gelu", "recip", "relu",
       "round",    "sigmoid", "sign", "silu",    "sin",  "sqr",        "sqrt",  "tanh"});
  static_assert(kNames.size() == kUnaryOpCount);
  return kNames[static_cast<size_t>(op)];
}

Tensor run_unary(const UnaryArgs& args, const Tensor& x, const Tensor& y) {
  run("unary", kernels(x).unary, args, x.stream());
  return y;
}

Tensor unary_with_param(const char* name, UnaryOp op, const Tensor& x, double param) {
  check_float(name, "x", x);
  Tensor y = empty_like(x);
  return run_unary({.op = op, .x = x.view(), .y = y.view(), .param = param}, x, y);
}

}  // namespace

Tensor affine(const Tensor& x, double mul, double add) {
  check_plain("affine", "x", x);
  Tensor y = empty_like(x);
  const AffineArgs args{.x = x.view(), .y = y.view(), .mul = mul, .add = add};
  run("affine", kernels(x).affine, args, x.stream());
  return y;
}

Tensor unary(UnaryOp op, const Tensor& x) {
  check_plain("unary", "x", x);
  check(op != UnaryOp::elu && op != UnaryOp::powf, "unary", name(op),
        " takes a parameter and has a function of its own; x is ", x);
  check(is_float(x.dtype()) || has_integer_form(op), "unary", name(op),
        " needs a float type, x is ", x);
  Tensor y = empty_like(x);
  return run_unary({.op = op, .x = x.view(), .y = y.view()}, x, y);
}

Tensor elu(const Tensor& x, double alpha) {
  return unary_with_param("elu", UnaryOp::elu, x, alpha);
}

Tensor powf(const Tensor& x, double exponent) {
  return unary_with_param("powf", UnaryOp::powf, x, exponent);
}

Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b) {
  check_plain("binary", "a", a);
  check_plain("binary", "b", b);
  check_like("binary", "a", a, "b", b);
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "binary");
  const Tensor wide_a = a.broadcast_to(shape), wide_b = b.broadcast_to(shape);
  Tensor y = empty(shape, a.dtype(), a.device());
  const BinaryArgs args{.op = op, .a = wide_a.view(), .b = wide_b.view(), .y = y.view()};
  run("binary", kernels(a).binary, args, a.stream());
  return y;
}

void add_(Tensor& y, const Tensor& x) {
  check_plain("add_", "y", y);
  check_like("add_", "y", y, "x", x);
  check_shape("add_", "x", x, y.shape());
  check_writable("add_", "y", y);
  const BinaryArgs args{.op = BinaryOp::add, .a = y.view(), .b = x.view(), .y = y.view()};
  run("binary", kernels(y).binary, args, y.stream());
}

Tensor compare(CompareOp op, const Tensor& a, const Tensor& b) {
  check_plain("compare", "a", a);
  check_plain("compare", "b", b);
  check_like("compare", "a", a, "b", b);
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "compare");
  const Tensor wide_a = a.broadcast_to(shape), wide_b = b.broadcast_to(shape);
  Tensor y = empty(shape, DType::u8, a.device());
  const CompareArgs args{.op = op, .a = wide_a.view(), .b = wide_b.view(), .y = y.view()};
  run("compare", kernels(a).compare, args, a.stream());
  return y;
}

Tensor where(const Tensor& cond, const Tensor& a, const Tensor& b) {
  check_integer("where", "cond", cond);
  check_plain("where", "a", a);
  check_plain("where", "b", b);
  check_like("where", "a", a, "b", b);
  check_same_device("where", "cond", cond, "a", a);
  const Shape values = broadcast_shapes(a.shape(), b.shape(), "where");
  const Shape shape = broadcast_shapes(cond.shape(), values, "where");
  const Tensor wide_cond = cond.broadcast_to(shape);
  const Tensor wide_a = a.broadcast_to(shape), wide_b = b.broadcast_to(shape);
  Tensor y = empty(shape, a.dtype(), a.device());
  const WhereArgs args{
      .cond = wide_cond.view(), .a = wide_a.view(), .b = wide_b.view(), .y = y.view()};
  run("where", kernels(a).where, args, a.stream());
  return y;
}

}  // namespace rbee
