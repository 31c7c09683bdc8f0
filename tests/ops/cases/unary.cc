// unary (24 functions, elu and powf with parameters) and affine.
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct Function {
  UnaryOp op;
  Family family;
  const char* name;
  double (*exact)(double x, double param);
  Values values = {-4, 4};
  double param = 0;
};

double normal_cdf(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2;
}
double tanh_gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

constexpr Family kExact = Family::exact, kStep = Family::elementwise, kCurve = Family::function;
constexpr Values kPositive = {0.01, 4};

const Function kFunctions[] = {
    {UnaryOp::abs, kExact, "abs", [](double x, double) { return std::fabs(x); }},
    {UnaryOp::ceil, kExact, "ceil", [](double x, double) { return std::ceil(x); }},
    {UnaryOp::cos, kCurve, "cos", [](double x, double) { return std::cos(x); }, {-100, 100}},
    {UnaryOp::elu,
     kCurve,
     "elu",
     [](double x, double a) { return x > 0 ? x : a * std::expm1(x); },
     {-4, 4},
     1.25},
    {UnaryOp::erf, kCurve, "erf", [](double x, double) { return std::erf(x); }},
    {UnaryOp::exp, kCurve, "exp", [](double x, double) { return std::exp(x); }},
    {UnaryOp::floor, kExact, "floor", [](double x, double) { return std::floor(x); }},
    {UnaryOp::gelu, kCurve, "gelu", [](double x, double) { return tanh_gelu(x); }},
    {UnaryOp::gelu_erf, kCurve, "gelu_erf", [](double x, double) { return x * normal_cdf(x); }},
    {UnaryOp::log, kCurve, "log", [](double x, double) { return std::log(x); }, kPositive},
    {UnaryOp::neg, kExact, "neg", [](double x, double) { return -x; }},
    {UnaryOp::normcdf, kCurve, "normcdf", [](double x, double) { return normal_cdf(x); }},
    {UnaryOp::powf, kCurve, "powf", [](double x, double y) { return std::pow(x, y); }, kPositive,
     2.5},
    {UnaryOp::powf,
     kCurve,
     "powf_odd",
     [](double x, double y) { return std::pow(x, y); },
     {-4, 4},
     3},
    {UnaryOp::quick_gelu, kCurve, "quick_gelu",
     [](double x, double) { return x / (1 + std::exp(-1.702 * x)); }},
    {UnaryOp::recip, kStep, "recip", [](double x, double) { return 1 / x; }, {0.5, 4}},
    {UnaryOp::relu, kExact, "relu", [](double x, double) { return x < 0 ? 0 : x; }},
    {UnaryOp::round, kExact, "round", [](double x, double) { return std::round(x); }},
    {UnaryOp::sigmoid, kCurve, "sigmoid", [](double x, double) { return 1 / (1 + std::exp(-x)); }},
    {UnaryOp::sign, kExact, "sign",
     [](double x, double) { return static_cast<double>((x > 0) - (x < 0)); }},
    {UnaryOp::silu, kCurve, "silu", [](double x, double) { return x / (1 + std::exp(-x)); }},
    {UnaryOp::sin, kCurve, "sin", [](double x, double) { return std::sin(x); }, {-100, 100}},
    {UnaryOp::sqr, kStep, "sqr", [](double x, double) { return x * x; }, {-4, 4}},
    {UnaryOp::sqrt, kStep, "sqrt", [](double x, double) { return std::sqrt(x); }, kPositive},
    {UnaryOp::tanh, kCurve, "tanh", [](double x, double) { return std::tanh(x); }},
};

void add_case(OpTable& out, const Function& f, const Layout& x_layout, DType dtype, Values values,
              bool big = false) {
  const auto build = [=](Scene& scene) {
    const View x = scene.input(x_layout, dtype, values);
    scene.flops = static_cast<double>(x.numel());
    return UnaryArgs{
        .op = f.op, .x = x, .y = scene.output({x_layout.shape}, dtype), .param = f.param};
  };
  const auto formula = [=](const std::vector<HostArray>& in) {
    HostArray y = host_zeros(in[0].shape);
    for (int64_t i = 0; i < y.numel(); ++i) y[i] = f.exact(in[0][i], f.param);
    return std::vector{y};
  };
  out.add<UnaryArgs>(&KernelTable::unary, {.name = cat(f.name, ' ', dtype, ' ', x_layout,
                                                       values.specials ? " specials" : ""),
                                           .family = f.family,
                                           .build = build,
                                           .formula = formula,
                                           .big = big});
}

bool has_integer_form(UnaryOp op) {
  return op == UnaryOp::abs || op == UnaryOp::neg || op == UnaryOp::relu || op == UnaryOp::sign ||
         op == UnaryOp::sqr;
}

// One of each cost: a sign bit, one exponential, and models' activations.
bool is_benchmarked(UnaryOp op) {
  return op == UnaryOp::neg || op == UnaryOp::exp || op == UnaryOp::silu || op == UnaryOp::gelu ||
         op == UnaryOp::gelu_erf || op == UnaryOp::sin;
}

void add_integers(OpTable& out, const Function& f) {
  for (const DType dtype : kIntegerTypes) {
    const bool is_signed = dtype != DType::u8 && dtype != DType::u32;
    if (f.op == UnaryOp::neg && !is_signed) continue;
    add_case(out, f, {{7, 13}, Form::transposed}, dtype, {is_signed ? -15.0 : 0.0, 15});
  }
}

OpTable unary_table() {
  OpTable out("unary");
  for (const Function& f : kFunctions) {
    for (const DType dtype : kFloatTypes) {
      add_case(out, f, {{3, 37}, Form::gaps}, dtype, f.values);
      add_case(out, f, {{131}}, dtype, f.values);
    }
    add_case(out, f, {{1}}, DType::f32, f.values);
    add_case(out, f, {{0, 5}}, DType::f32, f.values);
    add_case(out, f, {{5, 3, 67}, Form::contiguous, 0b010}, DType::f32, f.values);
    add_case(out, f, {{33, 19}, Form::transposed}, DType::f16, f.values);
    if (is_benchmarked(f.op)) add_case(out, f, {{1000, 1031}}, DType::f32, f.values, true);
    const Values specials = {f.values.low, f.values.high, true};
    for (const DType dtype : kFloatTypes) add_case(out, f, {{67}}, dtype, specials);
    if (has_integer_form(f.op)) add_integers(out, f);
  }
  return out;
}

struct AffineCase {
  Layout x;
  DType dtype = DType::f32;
  double mul = 1.5;
  double add = -0.75;
  bool big = false;
};

OpTable affine_table() {
  std::vector<AffineCase> cases = {{.x = {{1}}},
                                   {.x = {{0}}},
                                   {.x = {{7, 33}, Form::step2}},
                                   {.x = {{2, 3, 5, 7, 11}}},
                                   {.x = {{64, 129}, Form::transposed}},
                                   {.x = {{1000, 1031}}, .big = true}};
  for (const DType dtype : kPlainTypes) {
    for (const Form form : {Form::gaps, Form::contiguous}) {
      cases.push_back({.x = {{5, 77}, form}, .dtype = dtype, .mul = 2.5, .add = 3.25});
    }
  }
  OpTable out("affine");
  for (const AffineCase& c : cases) {
    const bool whole = is_integer(c.dtype);
    const auto build = [=](Scene& scene) {
      const View x = scene.input(c.x, c.dtype, whole ? Values{0, 50} : Values{});
      scene.flops = 2.0 * static_cast<double>(x.numel());
      return AffineArgs{
          .x = x, .y = scene.output({c.x.shape}, c.dtype), .mul = c.mul, .add = c.add};
    };
    const auto formula = [=](const std::vector<HostArray>& in) {
      HostArray y = host_zeros(in[0].shape);
      for (int64_t i = 0; i < y.numel(); ++i) {
        const double value = c.mul * in[0][i] + c.add;
        y[i] = whole ? std::trunc(value) : value;
      }
      return std::vector{y};
    };
    out.add<AffineArgs>(&KernelTable::affine, {.name = cat(c.dtype, ' ', c.x),
                                               .family = whole ? kExact : kStep,
                                               .build = build,
                                               .formula = formula,
                                               .big = c.big});
  }
  return out;
}

const RegisterOp kUnary(unary_table);
const RegisterOp kAffine(affine_table);

}  // namespace
}  // namespace rbee::harness
