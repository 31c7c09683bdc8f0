// Pooling and upsampling.
#include <algorithm>
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3};
constexpr DType kNumbers[] = {DType::f32, DType::f16,    DType::bf16, DType::f64, DType::i64,
                              DType::u8,  DType::f8e4m3, DType::u32,  DType::i16, DType::i32};

// Calls body(first element of an image of x, first of y) for images of (height, width).
template <typename Body>
void for_each_image(const HostArray& x, const HostArray& y, Body&& body) {
  const int64_t x_size = x.size(-2) * x.size(-1);
  const int64_t y_size = y.size(-2) * y.size(-1);
  for (int64_t image = 0; image * y_size < y.numel(); ++image) {
    body(&x.values[static_cast<size_t>(image * x_size)], image * y_size);
  }
}

struct PoolCase {
  Layout x;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  Values values = {};
  bool big = false;
  PoolOp op = PoolOp::avg;
  DType dtype = DType::f32;

  Shape out_shape() const {
    return {x.shape[0], x.shape[1], (x.shape[2] - kernel_h) / stride_h + 1,
            (x.shape[3] - kernel_w) / stride_w + 1};
  }
};

double pooled(const PoolCase& c, const double* image, int64_t row, int64_t column) {
  double sum = 0;
  double top = -INFINITY;
  bool has_nan = false;
  for (int64_t tap = 0; tap < c.kernel_h * c.kernel_w; ++tap) {
    const int64_t i = row * c.stride_h + tap / c.kernel_w;
    const int64_t j = column * c.stride_w + tap % c.kernel_w;
    const double value = image[i * c.x.shape[3] + j];
    sum += value;
    top = std::max(top, value);
    has_nan = has_nan || std::isnan(value);
  }
  if (c.op == PoolOp::avg) {
    const double mean = sum / static_cast<double>(c.kernel_h * c.kernel_w);
    return is_integer(c.dtype) ? std::trunc(mean) : mean;
  }
  return has_nan ? NAN : top;
}

std::vector<HostArray> pool_formula(const PoolCase& c, const std::vector<HostArray>& inputs) {
  HostArray y = host_zeros(c.out_shape());
  const int64_t width = y.size(-1);
  for_each_image(inputs[0], y, [&](const double* image, int64_t to) {
    for (int64_t i = 0; i < y.size(-2) * width; ++i) {
      y[to + i] = pooled(c, image, i / width, i % width);
    }
  });
  return {y};
}

void add_pool(OpTable& table, const PoolCase& c) {
  const bool avg = c.op == PoolOp::avg;
  table.add<Pool2dArgs>(
      &KernelTable::pool2d,
      {.name = cat(avg ? "avg " : "max ", c.dtype, ' ', c.x, ' ', c.kernel_h, 'x', c.kernel_w, " s",
                   c.stride_h, 'x', c.stride_w, c.values.specials ? " specials" : ""),
       .family = avg && is_float(c.dtype) ? Family::reduction : Family::exact,
       .build =
           [c](Scene& scene) {
             const View x = scene.input(c.x, c.dtype, c.values);
             const View y = scene.output({c.out_shape()}, c.dtype);
             scene.flops = static_cast<double>(y.numel() * c.kernel_h * c.kernel_w);
             return Pool2dArgs{c.op, x, y, c.kernel_h, c.kernel_w, c.stride_h, c.stride_w};
           },
       .formula = [c](const auto& inputs) { return pool_formula(c, inputs); },
       .big = c.big});
}

std::vector<PoolCase> pool_cases() {
  return {
      {.x = {{1, 1, 1, 1}}},
      {.x = {{2, 3, 8, 6}}, .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2},
      {.x = {{1, 5, 11, 13}, Form::gaps},
       .kernel_h = 3,
       .kernel_w = 4,
       .stride_h = 2,
       .stride_w = 3},
      {.x = {{2, 2, 9, 7}, Form::transposed}, .kernel_w = 2, .stride_h = 3, .stride_w = 4},
      {.x = {{0, 3, 4, 4}}, .kernel_h = 2, .kernel_w = 2},
  };
}

OpTable pool_table() {
  OpTable out("pool2d");
  for (PoolCase c : pool_cases()) {
    for (const DType dtype : kNumbers) {
      c.dtype = dtype;
      const bool is_signed = dtype != DType::u8 && dtype != DType::u32;
      if (is_integer(dtype)) c.values = {is_signed ? -50.0 : 0.0, 100};
      add_pool(out, c);
      c.values = {};
    }
    c.op = PoolOp::max;
    for (const DType dtype : kNumbers) {
      c.dtype = dtype;
      add_pool(out, c);
    }
  }
  PoolCase specials = {.x = {{1, 3, 5, 6}}, .kernel_h = 2, .kernel_w = 2};
  specials.values.specials = true;
  specials.op = PoolOp::max;
  add_pool(out, specials);
  add_pool(out, {.x = {{1, 64, 128, 128}},
                 .kernel_h = 2,
                 .kernel_w = 2,
                 .stride_h = 2,
                 .stride_w = 2,
                 .big = true});
  return out;
}

struct UpsampleCase {
  Layout x;
  int64_t height = 0, width = 0;  // of the result; height 0: a length only
  bool big = false;
  UpsampleMode mode = UpsampleMode::nearest;
  bool align_corners = false;
  DType dtype = DType::f32;

  Shape out_shape() const {
    if (height == 0) return {x.shape[0], x.shape[1], width};
    return {x.shape[0], x.shape[1], height, width};
  }
};

// The position among `in` elements that output i of `out` samples.
double place(const UpsampleCase& c, int64_t i, int64_t in, int64_t out) {
  const auto at = static_cast<double>(i);
  const auto size = static_cast<double>(in);
  if (c.mode == UpsampleMode::nearest) return std::floor(at * size / static_cast<double>(out));
  if (c.align_corners) return out > 1 ? at * (size - 1) / static_cast<double>(out - 1) : 0;
  return std::max(0.0, (at + 0.5) * size / static_cast<double>(out) - 0.5);
}

// Weight of input j for an output at `position`: a triangle of width 2, the last pixel repeated.
double tent(double position, int64_t j, int64_t in) {
  const double clamped = std::min(position, static_cast<double>(in - 1));
  return std::max(0.0, 1 - std::fabs(clamped - static_cast<double>(j)));
}

std::vector<HostArray> upsample_formula(const UpsampleCase& c,
                                        const std::vector<HostArray>& inputs) {
  const HostArray& x = inputs[0];
  HostArray y = host_zeros(c.out_shape());
  const int64_t in_height = c.height == 0 ? 1 : x.size(-2);
  const int64_t in_width = x.size(-1);
  const int64_t height = std::max<int64_t>(c.height, 1);
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t image = i / (height * c.width) * in_height * in_width;
    const double row = place(c, i / c.width % height, in_height, height);
    const double column = place(c, i % c.width, in_width, c.width);
    for (int64_t from = 0; from < in_height * in_width; ++from) {
      const double weight =
          tent(row, from / in_width, in_height) * tent(column, from % in_width, in_width);
      if (weight > 0) y[i] += weight * x[image + from];
    }
  }
  return {y};
}

void add_upsample(OpTable& table, const UpsampleCase& c) {
  const bool nearest = c.mode == UpsampleMode::nearest;
  const char* mode = nearest ? "nearest " : c.align_corners ? "aligned " : "bilinear ";
  table.add<UpsampleArgs>(
      &KernelTable::upsample,
      {.name = cat(mode, c.dtype, ' ', c.x, " to ", c.height, 'x', c.width),
       .family = nearest ? Family::exact : Family::reduction,
       .build =
           [c](Scene& scene) {
             const View x = scene.input(c.x, c.dtype);
             const View y = scene.output({c.out_shape()}, c.dtype);
             scene.flops =
                 c.mode == UpsampleMode::nearest ? 0.0 : 7.0 * static_cast<double>(y.numel());
             return UpsampleArgs{c.mode, x, y, c.align_corners};
           },
       .formula = [c](const auto& inputs) { return upsample_formula(c, inputs); },
       .big = c.big});
}

std::vector<UpsampleCase> upsample_cases() {
  return {
      {.x = {{1, 1, 1, 1}}, .height = 1, .width = 1},
      {.x = {{2, 3, 4, 5}}, .height = 8, .width = 10},
      {.x = {{1, 2, 9, 8}, Form::gaps}, .height = 4, .width = 19},
      {.x = {{2, 1, 3, 7}, Form::transposed}, .height = 11, .width = 1},
      {.x = {{0, 1, 3, 2}}, .height = 5, .width = 5},
  };
}

OpTable upsample_table() {
  OpTable out("upsample");
  for (UpsampleCase c : upsample_cases()) {
    for (const DType dtype : kNumbers) {
      c.dtype = dtype;
      add_upsample(out, c);
    }
    c.mode = UpsampleMode::bilinear;
    for (const DType dtype : kFloats) {
      c.dtype = dtype;
      c.align_corners = false;
      add_upsample(out, c);
      c.align_corners = true;
      add_upsample(out, c);
    }
  }
  add_upsample(out, {.x = {{2, 3, 7}}, .width = 17});
  add_upsample(out, {.x = {{2, 3, 13}, Form::gaps}, .width = 5, .dtype = DType::i16});
  add_upsample(out, {.x = {{1, 64, 16, 16}}, .height = 32, .width = 32, .big = true});
  add_upsample(out, {.x = {{1, 64, 16, 16}},
                     .height = 32,
                     .width = 32,
                     .big = true,
                     .mode = UpsampleMode::bilinear});
  return out;
}

const RegisterOp kPool(pool_table);
const RegisterOp kUpsample(upsample_table);

}  // namespace
}  // namespace rbee::harness
