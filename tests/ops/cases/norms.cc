// rms_norm and add_rms_norm.
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct RmsNormCase {
  Layout x;
  DType dtype = DType::f32;
  Values values = {};
  float eps = 1e-5f;
  bool big = false;
};

std::vector<RmsNormCase> cases() {
  std::vector<RmsNormCase> out;
  for (const DType dtype : kFloatTypes) {
    out.push_back({.x = {{1}}, .dtype = dtype});
    out.push_back({.x = {{7, 33}}, .dtype = dtype});
    out.push_back({.x = {{3, 5, 131}, Form::gaps}, .dtype = dtype});
    out.push_back({.x = {{17, 64}, Form::transposed}, .dtype = dtype});
    out.push_back({.x = {{0, 8}}, .dtype = dtype});
  }
  out.push_back({.x = {{2, 2, 3, 19}}});
  out.push_back({.x = {{1, 576}}, .eps = 0.1f});
  out.push_back({.x = {{3, 4097}}, .values = {-1e-4, 1e-4}});
  out.push_back({.x = {{2, 257}, Form::step2}});
  out.push_back({.x = {{512, 576}}, .big = true});
  return out;
}

// Normalised rows of x, times weight.
HostArray normalized(const HostArray& x, const HostArray& weight, double eps) {
  HostArray y = host_zeros(x.shape);
  const int64_t dim = x.size(-1);
  for (int64_t row = 0; row < x.numel(); row += dim) {
    double squares = 0;
    for (int64_t i = 0; i < dim; ++i) squares += x[row + i] * x[row + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(dim) + eps);
    for (int64_t i = 0; i < dim; ++i) y[row + i] = x[row + i] * scale * weight[i];
  }
  return y;
}

std::string name_of(const RmsNormCase& c) {
  return cat(c.dtype, ' ', c.x, c.eps == 1e-5f ? "" : " large eps");
}

OpTable rms_norm_table() {
  OpTable out("rms_norm");
  for (const RmsNormCase& c : cases()) {
    out.add<RmsNormArgs>(
        &KernelTable::rms_norm,
        {.name = name_of(c),
         .family = Family::norm,
         .build =
             [c](Scene& scene) {
               const View x = scene.input(c.x, c.dtype, c.values);
               const View weight = scene.input({{x.size(-1)}}, c.dtype);
               scene.flops = 4.0 * static_cast<double>(x.numel());
               return RmsNormArgs{x, weight, scene.output({c.x.shape}, c.dtype), c.eps};
             },
         .formula =
             [c](const std::vector<HostArray>& in) {
               return std::vector{normalized(in[0], in[1], static_cast<double>(c.eps))};
             },
         .big = c.big});
  }
  return out;
}

OpTable add_rms_norm_table() {
  OpTable out("add_rms_norm");
  for (const RmsNormCase& c : cases()) {
    if (c.x.shape.rank() != 2) continue;
    out.add<AddRmsNormArgs>(
        &KernelTable::add_rms_norm,
        {.name = name_of(c),
         .family = Family::norm,
         .build =
             [c](Scene& scene) {
               const View x = scene.input(c.x, c.dtype, c.values);
               const View residual = scene.input({c.x.shape}, c.dtype, c.values);
               const View weight = scene.input({{x.size(-1)}}, c.dtype);
               scene.flops = 5.0 * static_cast<double>(x.numel());
               return AddRmsNormArgs{.x = x,
                                     .residual = residual,
                                     .weight = weight,
                                     .sum = scene.output({c.x.shape}, c.dtype),
                                     .y = scene.output({c.x.shape}, c.dtype),
                                     .eps = c.eps};
             },
         .formula =
             [c](const std::vector<HostArray>& in) {
               HostArray sum = in[0];
               for (int64_t i = 0; i < sum.numel(); ++i) sum[i] += in[1][i];
               return std::vector{sum, normalized(sum, in[2], static_cast<double>(c.eps))};
             },
         .big = c.big});
  }
  return out;
}

const RegisterOp kRmsNorm(rms_norm_table);
const RegisterOp kAddRmsNorm(add_rms_norm_table);

}  // namespace
}  // namespace rbee::harness
