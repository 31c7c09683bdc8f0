// cast, copy, copy2d and fill.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/api/dispatch.h"
#include "tests/support/block_types.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct CastCase {
  Layout x;
  DType from = DType::f32;
  DType to = DType::f16;
  Form y = Form::contiguous;
  Values values = {0, 120};
  bool big = false;
};

std::vector<CastCase> cast_cases() {
  std::vector<CastCase> out;
  for (const DType from : kPlainTypes) {
    for (const DType to : kPlainTypes) {
      out.push_back({{{5, 27}, Form::gaps}, from, to, Form::transposed});
      out.push_back({{{5, 27}}, from, to});
    }
  }
  for (const DType from : kFloatTypes) {
    for (const DType to : kIntegerTypes) {
      out.push_back({{{23}}, from, to, Form::contiguous, {-1e6, 1e6, true}});
    }
  }
  for (const DType from : test::block_types()) {
    for (const DType to : kFloatTypes) out.push_back({{{3, 512}}, from, to});
    out.push_back({{{0, 256}}, from, DType::f32});
    out.push_back({{{3, 256}}, from, DType::f32, Form::gaps});
  }
  out.push_back({{{1}}});
  out.push_back({{{0}}});
  out.push_back({{{4, 7, 9}, Form::contiguous, 0b010}, DType::f32, DType::bf16});
  out.push_back({.x = {{1000, 1031}}, .big = true});
  out.push_back({.x = {{1000, 1031}}, .from = DType::bf16, .to = DType::f32, .big = true});
  out.push_back({.x = {{1024, 1024}}, .from = DType::q4_k, .to = DType::f32, .big = true});
  return out;
}

// Truncates and saturates; NaN gives 0.
double to_integer(double x, DType to) {
  if (std::isnan(x)) return 0;
  double low = 0, high = 0;
  dispatch<uint8_t, uint32_t, int16_t, int32_t, int64_t>("cast", to, [&]<typename Int>() {
    low = static_cast<double>(std::numeric_limits<Int>::min());
    high = static_cast<double>(std::numeric_limits<Int>::max());
  });
  return std::clamp(std::trunc(x), low, high);
}

OpTable cast_table() {
  OpTable out("cast");
  for (const CastCase& c : cast_cases()) {
    const bool whole = is_integer(c.to);
    const auto build = [=](Scene& scene) {
      const View x = scene.input(c.x, c.from, c.values);
      return CastArgs{.x = x, .y = scene.output({c.x.shape, c.y}, c.to)};
    };
    const auto formula = [=](const std::vector<HostArray>& in) {
      HostArray y = in[0];
      for (double& value : y.values) value = whole ? to_integer(value, c.to) : value;
      return std::vector{y};
    };
    out.add<CastArgs>(&KernelTable::cast,
                      {.name = cat(c.from, " to ", c.to, ' ', Layout{c.x}, " to ",
                                   Layout{c.x.shape, c.y}, c.values.specials ? " specials" : ""),
                       .family = whole ? Family::exact : Family::elementwise,
                       .build = build,
                       .formula = formula,
                       .big = c.big});
  }
  return out;
}

std::vector<HostArray> same(const std::vector<HostArray>& in) {
  return {in[0]};
}

struct CopyCase {
  Layout x;
  Form y = Form::contiguous;
  DType dtype = DType::f32;
  bool big = false;
};

OpTable copy_table() {
  std::vector<CopyCase> cases = {{.x = {{1}}},
                                 {.x = {{0, 3}}},
                                 {.x = {{5, 4, 3, 2, 7}, Form::transposed}},
                                 {.x = {{7, 129}, Form::contiguous, 0b01}, .y = Form::gaps},
                                 {.x = {{1024, 1031}, Form::transposed}, .big = true},
                                 {.x = {{1000, 1031}}, .big = true}};
  for (const DType dtype : kPlainTypes) {
    cases.push_back({{{6, 37}, Form::gaps}, Form::transposed, dtype});
    cases.push_back({{{3, 131}, Form::step2}, Form::step2, dtype});
    cases.push_back({{{3, 133}}, Form::contiguous, dtype});
  }
  OpTable out("copy");
  for (const CopyCase& c : cases) {
    const auto build = [=](Scene& scene) {
      const View x = scene.input(c.x, c.dtype, {0, 100, true});
      return CopyArgs{.x = x, .y = scene.output({c.x.shape, c.y}, c.dtype)};
    };
    out.add<CopyArgs>(&KernelTable::copy,
                      {.name = cat(c.dtype, ' ', c.x, " to ", Layout{c.x.shape, c.y}),
                       .build = build,
                       .formula = same,
                       .big = c.big});
  }
  return out;
}

struct Copy2dCase {
  int64_t rows = 1, cols = 1, src_stride = 1, dst_stride = 1;
  DType dtype = DType::f32;
  bool big = false;
};

OpTable copy2d_table() {
  std::vector<Copy2dCase> cases = {
      {},
      {.rows = 0, .cols = 5, .src_stride = 5, .dst_stride = 5},
      {.rows = 4, .cols = 5, .src_stride = 0, .dst_stride = 9},
      {.rows = 1000, .cols = 1000, .src_stride = 1031, .dst_stride = 1009, .big = true}};
  for (const DType dtype : kPlainTypes) {
    cases.push_back({.rows = 7, .cols = 33, .src_stride = 41, .dst_stride = 35, .dtype = dtype});
  }
  OpTable out("copy2d");
  for (const Copy2dCase& c : cases) {
    const auto build = [=](Scene& scene) {
      const View src = scene.input({{c.rows * c.src_stride + c.cols}}, c.dtype, {0, 100});
      const View dst = scene.in_out({{c.rows * c.dst_stride}}, c.dtype, {0, 100});
      scene.bytes = 2.0 * static_cast<double>(c.rows * c.cols * info(c.dtype).block_bytes);
      return Copy2dArgs{src, dst, c.rows, c.cols, c.src_stride, c.dst_stride};
    };
    const auto formula = [=](const std::vector<HostArray>& in) {
      HostArray y = in[1];
      for (int64_t i = 0; i < c.rows * c.cols; ++i) {
        const int64_t row = i / c.cols, col = i % c.cols;
        y[row * c.dst_stride + col] = in[0][row * c.src_stride + col];
      }
      return std::vector{y};
    };
    out.add<Copy2dArgs>(&KernelTable::copy2d,
                        {.name = cat(c.dtype, ' ', c.rows, " x ", c.cols, " from ", c.src_stride,
                                     " to ", c.dst_stride),
                         .build = build,
                         .formula = formula,
                         .big = c.big});
  }
  return out;
}

struct FillCase {
  Layout y;
  DType dtype = DType::f32;
  double value = 3;
  bool big = false;
};

OpTable fill_table() {
  std::vector<FillCase> cases = {{.y = {{1}}},
                                 {.y = {{0}}},
                                 {.y = {{9, 31}, Form::transposed}, .value = INFINITY},
                                 {.y = {{1000, 1031}}, .big = true}};
  for (const DType dtype : kPlainTypes) {
    cases.push_back({{{5, 43}, Form::gaps}, dtype, 2});
    cases.push_back({{{129}, Form::step2}, dtype, is_integer(dtype) ? 7.9 : -0.5});
    cases.push_back({{{133}}, dtype, 2});
  }
  OpTable out("fill");
  for (const FillCase& c : cases) {
    const auto build = [=](Scene& scene) {
      return FillArgs{.y = scene.output(c.y, c.dtype), .value = c.value};
    };
    const auto formula = [=](const std::vector<HostArray>&) {
      HostArray y = host_zeros(c.y.shape);
      for (double& value : y.values) value = is_integer(c.dtype) ? std::trunc(c.value) : c.value;
      return std::vector{y};
    };
    out.add<FillArgs>(&KernelTable::fill, {.name = cat(c.dtype, ' ', c.y, " = ", c.value),
                                           .build = build,
                                           .formula = formula,
                                           .big = c.big});
  }
  return out;
}

const RegisterOp kCast(cast_table);
const RegisterOp kCopy(copy_table);
const RegisterOp kCopy2d(copy2d_table);
const RegisterOp kFill(fill_table);

}  // namespace
}  // namespace rbee::harness
