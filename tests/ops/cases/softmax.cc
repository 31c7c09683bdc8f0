// y = softmax(x) over the last axis.
#include <algorithm>
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct SoftmaxCase {
  Layout x;
  DType dtype = DType::f32;
  Values values = {};
  bool big = false;
};

std::vector<SoftmaxCase> cases() {
  std::vector<SoftmaxCase> out;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3}) {
    out.push_back({.x = {{1}}, .dtype = dtype});
    out.push_back({.x = {{7, 33}}, .dtype = dtype});
    out.push_back({.x = {{3, 5, 131}, Form::gaps}, .dtype = dtype});
    out.push_back({.x = {{17, 64}, Form::transposed}, .dtype = dtype});
    out.push_back({.x = {{0, 8}}, .dtype = dtype});
    out.push_back({.x = {{8, 0}}, .dtype = dtype});
    out.push_back({.x = {{2, 1100}}, .dtype = dtype});
    // Rows with NaN and infinities, and rows of only one of them.
    for (const int64_t dim : {1, 2, 9, 1100}) {
      out.push_back({.x = {{4, dim}}, .dtype = dtype, .values = {-2, 2, 0, false, true}});
    }
  }
  out.push_back({.x = {{2, 3, 19}, Form::contiguous, 0b010}});
  out.push_back({.x = {{5, 1024}, Form::step2}, .values = {-80, 80}});
  out.push_back({.x = {{2048, 1024}}, .big = true});
  return out;
}

std::vector<HostArray> formula(const std::vector<HostArray>& inputs) {
  const HostArray& x = inputs[0];
  HostArray y = host_zeros(x.shape);
  const int64_t dim = x.size(-1);
  for (int64_t row = 0; row < x.numel(); row += dim) {
    double top = -INFINITY;
    for (int64_t i = row; i < row + dim; ++i) top = std::max(top, x[i]);
    double sum = 0;
    for (int64_t i = row; i < row + dim; ++i) sum += std::exp(x[i] - top);
    for (int64_t i = row; i < row + dim; ++i) y[i] = std::exp(x[i] - top) / sum;
  }
  return {y};
}

OpTable table() {
  OpTable out("softmax");
  for (const SoftmaxCase& c : cases()) {
    out.add<SoftmaxArgs>(&KernelTable::softmax,
                         {.name = cat(c.dtype, ' ', c.x, c.values.specials ? " specials" : ""),
                          .family = Family::norm,
                          .build =
                              [c](Scene& scene) {
                                const View x = scene.input(c.x, c.dtype, c.values);
                                scene.flops = 5.0 * static_cast<double>(x.numel());
                                return SoftmaxArgs{.x = x, .y = scene.output({c.x.shape}, c.dtype)};
                              },
                          .formula = formula,
                          .big = c.big});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
