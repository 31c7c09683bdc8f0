// Windows of convolutions as rows, over one and two spatial axes, and sums of windows.
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct WindowCase {
  Shape x;                                         // two or one spatial axes
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1};  // with one axis, the second entry
  int64_t padding[2] = {0, 0}, dilation[2] = {1, 1};
  Form form = Form::contiguous;  // of both operands
  DType dtype = DType::f32;
  bool big = false;

  bool flat() const { return x.rank() == 3; }
  int64_t size(int axis) const {
    if (flat()) return axis == 0 ? 1 : x[2];
    return x[2 + axis];
  }
  int64_t out(int axis) const {
    const int64_t span = dilation[axis] * (kernel[axis] - 1) + 1;
    return (size(axis) + 2 * padding[axis] - span) / stride[axis] + 1;
  }
  int64_t taps() const { return kernel[0] * kernel[1]; }
};

std::vector<WindowCase> window_cases() {
  return {
      {.x = {1, 1, 1}},
      {.x = {2, 3, 11}, .kernel = {1, 3}},
      {.x = {2, 5, 23},
       .kernel = {1, 4},
       .stride = {1, 3},
       .padding = {0, 5},
       .dilation = {1, 2},
       .form = Form::gaps},
      {.x = {0, 3, 5}, .kernel = {1, 2}},
      {.x = {2, 3, 7, 9}, .kernel = {3, 2}, .padding = {1, 1}},
      {.x = {2, 4, 13, 11},
       .kernel = {3, 5},
       .stride = {2, 3},
       .padding = {1, 4},
       .dilation = {3, 2},
       .form = Form::transposed},
      {.x = {1, 0, 5, 4}, .kernel = {2, 2}},
  };
}

std::string name_of(const WindowCase& c) {
  std::string spatial;
  for (int i = c.flat() ? 1 : 0; i < 2; ++i) {
    spatial += cat(' ', c.kernel[i], " s", c.stride[i], " p", c.padding[i], " d", c.dilation[i]);
  }
  return cat(c.dtype, ' ', Layout{c.x, c.form}, spatial);
}

Im2colArgs build(const WindowCase& c, Scene& scene) {
  const View x = scene.input({c.x, c.form}, c.dtype, {0, 100});
  const Shape rows{c.x[0], c.out(0) * c.out(1), c.x[1] * c.taps()};
  return {.x = x,
          .y = scene.output({rows, c.form}, c.dtype),
          .kernel_h = c.kernel[0],
          .kernel_w = c.kernel[1],
          .stride_h = c.stride[0],
          .stride_w = c.stride[1],
          .padding_h = c.padding[0],
          .padding_w = c.padding[1],
          .dilation_h = c.dilation[0],
          .dilation_w = c.dilation[1],
          .out_w = c.out(1)};
}

// Image by image: each pixel is added to every window that covers it.
std::vector<HostArray> formula(const WindowCase& c, const HostArray& x) {
  HostArray y = host_zeros({c.x[0], c.out(0) * c.out(1), c.x[1] * c.taps()});
  const int64_t pixels = c.size(0) * c.size(1), row_elements = c.x[1] * c.taps();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t plane = i / pixels, row = i % pixels / c.size(1), column = i % c.size(1);
    for (int64_t tap = 0; tap < c.taps(); ++tap) {
      const int64_t down = row + c.padding[0] - tap / c.kernel[1] * c.dilation[0];
      const int64_t across = column + c.padding[1] - tap % c.kernel[1] * c.dilation[1];
      if (down < 0 || down % c.stride[0] != 0 || down / c.stride[0] >= c.out(0)) continue;
      if (across < 0 || across % c.stride[1] != 0 || across / c.stride[1] >= c.out(1)) continue;
      const int64_t window = down / c.stride[0] * c.out(1) + across / c.stride[1];
      const int64_t image = plane / c.x[1], channel = plane % c.x[1];
      y[(image * c.out(0) * c.out(1) + window) * row_elements + channel * c.taps() + tap] = x[i];
    }
  }
  return {y};
}

OpTable im2col_table() {
  OpTable out("im2col");
  const auto add = [&](const WindowCase& c) {
    out.add<Im2colArgs>(
        &KernelTable::im2col,
        {.name = name_of(c),
         .build = [=](Scene& scene) { return build(c, scene); },
         .formula = [=](const std::vector<HostArray>& in) { return formula(c, in[0]); },
         .big = c.big});
  };
  for (WindowCase c : window_cases()) {
    for (const DType dtype : kPlainTypes) {
      c.dtype = dtype;
      add(c);
    }
  }
  add({.x = {1, 64, 64, 64}, .kernel = {3, 3}, .padding = {1, 1}, .big = true});
  return out;
}

struct SumCase {
  Layout x;  // (batch, length, channels, kernel)
  int64_t stride = 1;
  DType dtype = DType::f32;
  bool big = false;

  Shape result() const { return {x.shape[0], x.shape[2], (x.shape[1] - 1) * stride + x.shape[3]}; }
};

std::vector<SumCase> sum_cases() {
  return {
      {.x = {{1, 1, 1, 1}}},
      {.x = {{2, 7, 3, 5}}, .stride = 2},
      {.x = {{2, 9, 4, 3}, Form::gaps}, .stride = 5},  // places that no window reaches
      {.x = {{1, 12, 5, 7}, Form::transposed}, .stride = 1},
      {.x = {{0, 3, 2, 4}}, .stride = 2},
  };
}

std::vector<HostArray> summed(const SumCase& c, const HostArray& x) {
  HostArray y = host_zeros(c.result());
  const int64_t length = x.size(1), channels = x.size(2), kernel = x.size(3);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t tap = i % kernel, channel = i / kernel % channels;
    const int64_t window = i / kernel / channels % length;
    const int64_t image = i / kernel / channels / length;
    y[(image * channels + channel) * y.size(2) + window * c.stride + tap] += x[i];
  }
  return {y};
}

OpTable col2im1d_table() {
  OpTable out("col2im1d");
  const auto add = [&](const SumCase& c) {
    // Sums of integers fit u8.
    const Values values = is_integer(c.dtype) ? Values{0, 20} : Values{};
    out.add<Col2im1dArgs>(
        &KernelTable::col2im1d,
        {.name = cat(c.dtype, ' ', c.x, " s", c.stride),
         .family = is_integer(c.dtype) ? Family::exact : Family::reduction,
         .build =
             [=](Scene& scene) {
               const View x = scene.input(c.x, c.dtype, values);
               const View y = scene.output({c.result(), c.x.form}, c.dtype);
               return Col2im1dArgs{.x = x, .y = y, .stride = c.stride};
             },
         .formula = [=](const std::vector<HostArray>& in) { return summed(c, in[0]); },
         .big = c.big});
  };
  for (SumCase c : sum_cases()) {
    for (const DType dtype : kPlainTypes) {
      c.dtype = dtype;
      add(c);
    }
  }
  add({.x = {{1, 2000, 64, 16}}, .stride = 8, .big = true});
  return out;
}

const RegisterOp kIm2col(im2col_table);
const RegisterOp kCol2im1d(col2im1d_table);

}  // namespace
}  // namespace rbee::harness
