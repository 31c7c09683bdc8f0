// Convolutions and transposed convolutions of one and two spatial axes.
#include <algorithm>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

// A convolution of any kind; with only one spatial axis, the first entry is ignored.
struct ConvCase {
  int64_t batch = 1, in = 1, out = 1, groups = 1;
  int64_t size[2] = {1, 1}, kernel[2] = {1, 1}, stride[2] = {1, 1}, padding[2] = {0, 0};
  int64_t dilation[2] = {1, 1}, output_padding[2] = {0, 0};
  bool bias = true;
  Form form = Form::contiguous;  // of x
  Form weight_form = Form::contiguous;
  DType dtype = DType::f32;
  bool transposed = false;
  bool big = false;

  int64_t out_size(int axis) const {
    const int64_t span = dilation[axis] * (kernel[axis] - 1) + 1;
    if (transposed) {
      return (size[axis] - 1) * stride[axis] - 2 * padding[axis] + span + output_padding[axis];
    }
    return (size[axis] + 2 * padding[axis] - span) / stride[axis] + 1;
  }
};

std::string name_of(const ConvCase& c, int axes) {
  std::string spatial;
  for (int i = 2 - axes; i < 2; ++i) {
    spatial += cat(' ', c.size[i], ':', c.kernel[i], " s", c.stride[i], " p", c.padding[i], " d",
                   c.dilation[i]);
    if (c.output_padding[i] > 0) spatial += cat(" o", c.output_padding[i]);
  }
  return cat(c.dtype, ' ', c.batch, 'x', c.in, "->", c.out, " g", c.groups, spatial,
             c.bias ? " bias" : "", c.form == Form::contiguous ? "" : " strided",
             c.weight_form == Form::contiguous ? "" : " weight strided");
}

Shape with_spatial(int64_t a, int64_t b, const int64_t (&spatial)[2], int axes) {
  Shape shape = {a, b};
  for (int i = 2 - axes; i < 2; ++i) shape.push_back(spatial[i]);
  return shape;
}

struct Operands {
  View x, weight, bias, y;
};

Operands operands(Scene& scene, const ConvCase& c, int axes) {
  const int64_t out_sizes[2] = {c.out_size(0), c.out_size(1)};
  const Shape weight = c.transposed ? with_spatial(c.in, c.out / c.groups, c.kernel, axes)
                                    : with_spatial(c.out, c.in / c.groups, c.kernel, axes);
  Operands o;
  o.x = scene.input({with_spatial(c.batch, c.in, c.size, axes), c.form}, c.dtype);
  o.weight = scene.input({weight, c.weight_form}, c.dtype);
  if (c.bias) o.bias = scene.input({{c.out}}, c.dtype);
  o.y = scene.output({with_spatial(c.batch, c.out, out_sizes, axes)}, c.dtype);
  const View& positions = c.transposed ? o.x : o.y;
  const int64_t pixels = positions.numel() / std::max<int64_t>(positions.sizes[1], 1);
  scene.flops = 2.0 * static_cast<double>(pixels * o.weight.numel());
  return o;
}

// The pixels that tap (i, j) connects: input pixel `from` and output pixel `to`, of h x w.
struct Link {
  int64_t from, to;
};

// The links of one tap. A convolution's output p reads input p * stride - padding + tap * dilation;
// the transposed one swaps reading and writing.
std::vector<Link> links(const ConvCase& c, int64_t i, int64_t j) {
  const int64_t out[2] = {c.out_size(0), c.out_size(1)};
  const int64_t* dense = c.transposed ? c.size : out;
  const int64_t* sparse = c.transposed ? out : c.size;
  std::vector<Link> found;
  for (int64_t p = 0; p < dense[0] * dense[1]; ++p) {
    const int64_t row = p / dense[1] * c.stride[0] - c.padding[0] + i * c.dilation[0];
    const int64_t column = p % dense[1] * c.stride[1] - c.padding[1] + j * c.dilation[1];
    if (row < 0 || row >= sparse[0] || column < 0 || column >= sparse[1]) continue;
    const int64_t q = row * sparse[1] + column;
    found.push_back(c.transposed ? Link{p, q} : Link{q, p});
  }
  return found;
}

void add_tap(const ConvCase& c, const HostArray& x, const HostArray& weight, HostArray& y,
             int64_t tap) {
  const int64_t taps = c.kernel[0] * c.kernel[1];
  const int64_t in_pixels = c.size[0] * c.size[1];
  const int64_t out_pixels = c.out_size(0) * c.out_size(1);
  const std::vector<Link> pixels = links(c, tap / c.kernel[1], tap % c.kernel[1]);
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t i = 0; i < c.in * c.out; ++i) {
      const int64_t from = i % c.in;
      const int64_t to = i / c.in;
      const int64_t in_group = c.in / c.groups;
      const int64_t out_group = c.out / c.groups;
      if (from / in_group != to / out_group) continue;
      const int64_t filter =
          c.transposed ? from * out_group + to % out_group : to * in_group + from % in_group;
      const double w = weight[filter * taps + tap];
      for (const Link& link : pixels) {
        y[(n * c.out + to) * out_pixels + link.to] +=
            w * x[(n * c.in + from) * in_pixels + link.from];
      }
    }
  }
}

std::vector<HostArray> formula(const ConvCase& c, int axes, const std::vector<HostArray>& inputs) {
  const int64_t out_sizes[2] = {c.out_size(0), c.out_size(1)};
  HostArray y = host_zeros(with_spatial(c.batch, c.out, out_sizes, axes));
  const int64_t pixels = out_sizes[0] * out_sizes[1];
  for (int64_t i = 0; c.bias && i < y.numel(); ++i) y[i] = inputs[2][i / pixels % c.out];
  for (int64_t tap = 0; tap < c.kernel[0] * c.kernel[1]; ++tap) {
    add_tap(c, inputs[0], inputs[1], y, tap);
  }
  return {y};
}

Conv1dArgs conv1d_args(const Operands& o, const ConvCase& c) {
  return {.x = o.x,
          .weight = o.weight,
          .bias = o.bias,
          .y = o.y,
          .stride = c.stride[1],
          .padding = c.padding[1],
          .dilation = c.dilation[1],
          .groups = c.groups};
}

Conv2dArgs conv2d_args(const Operands& o, const ConvCase& c) {
  return {.x = o.x,
          .weight = o.weight,
          .bias = o.bias,
          .y = o.y,
          .stride_h = c.stride[0],
          .stride_w = c.stride[1],
          .padding_h = c.padding[0],
          .padding_w = c.padding[1],
          .dilation_h = c.dilation[0],
          .dilation_w = c.dilation[1],
          .groups = c.groups};
}

ConvTranspose1dArgs conv_transpose1d_args(const Operands& o, const ConvCase& c) {
  return {.x = o.x,
          .weight = o.weight,
          .bias = o.bias,
          .y = o.y,
          .stride = c.stride[1],
          .padding = c.padding[1],
          .output_padding = c.output_padding[1],
          .dilation = c.dilation[1],
          .groups = c.groups};
}

ConvTranspose2dArgs conv_transpose2d_args(const Operands& o, const ConvCase& c) {
  return {.x = o.x,
          .weight = o.weight,
          .bias = o.bias,
          .y = o.y,
          .stride_h = c.stride[0],
          .stride_w = c.stride[1],
          .padding_h = c.padding[0],
          .padding_w = c.padding[1],
          .output_padding_h = c.output_padding[0],
          .output_padding_w = c.output_padding[1],
          .dilation_h = c.dilation[0],
          .dilation_w = c.dilation[1],
          .groups = c.groups};
}

std::vector<ConvCase> cases_of_one_axis() {
  return {
      {},
      {.batch = 2, .in = 3, .out = 4, .size = {1, 11}, .kernel = {1, 3}, .bias = false},
      {.batch = 2,
       .in = 6,
       .out = 9,
       .groups = 3,
       .size = {1, 23},
       .kernel = {1, 4},
       .stride = {1, 3},
       .padding = {0, 5},
       .dilation = {1, 2},
       .form = Form::transposed,
       .weight_form = Form::gaps},
      {.in = 7, .out = 7, .groups = 7, .size = {1, 9}, .kernel = {1, 3}, .form = Form::gaps},
      {.batch = 2,
       .in = 4,
       .out = 26,
       .groups = 2,
       .size = {1, 40},
       .kernel = {1, 3},
       .form = Form::transposed},
      {.in = 12, .out = 5, .size = {1, 1100}, .kernel = {1, 3}, .padding = {0, 1}},
      {.batch = 0, .in = 3, .out = 2, .size = {1, 5}, .kernel = {1, 2}},
  };
}

std::vector<ConvCase> cases_of_two_axes() {
  return {
      {},
      {.in = 3, .out = 5, .size = {7, 9}, .kernel = {3, 2}, .bias = false},
      {.batch = 2,
       .in = 4,
       .out = 6,
       .groups = 2,
       .size = {13, 11},
       .kernel = {3, 5},
       .stride = {2, 3},
       .padding = {1, 4},
       .dilation = {3, 2},
       .form = Form::transposed,
       .weight_form = Form::gaps},
      {.batch = 2,
       .in = 33,
       .out = 31,
       .size = {9, 10},
       .kernel = {3, 3},
       .padding = {1, 1},
       .form = Form::gaps},
      {.in = 8, .out = 16, .groups = 8, .size = {9, 10}, .kernel = {5, 3}, .stride = {2, 1}},
      {.batch = 3, .in = 37, .out = 17, .size = {5, 7}},        // a matrix product
      {.in = 3, .out = 70, .size = {8, 13}, .kernel = {2, 2}},  // more than a tile of both
      {.batch = 2,
       .in = 6,
       .out = 26,
       .groups = 2,
       .size = {6, 20},
       .kernel = {3, 3},
       .padding = {2, 1},
       .dilation = {1, 2},
       .form = Form::transposed},
      {.in = 2, .out = 7, .size = {41, 37}, .kernel = {3, 3}, .padding = {1, 1}},
      {.in = 5, .out = 13, .size = {8, 40}, .kernel = {2, 3}, .stride = {1, 2}},
      {.in = 3, .out = 4, .size = {33, 1}, .kernel = {3, 1}, .stride = {2, 1}},
      {.batch = 0, .in = 3, .out = 2, .size = {5, 4}, .kernel = {2, 2}},
  };
}

ConvCase transposed(ConvCase c) {
  c.transposed = true;
  for (int i = 0; i < 2; ++i) {
    if (c.stride[i] > 1) c.output_padding[i] = c.stride[i] - 1;
  }
  return c;
}

template <typename Args>
void add(OpTable& table, Slot<Args> KernelTable::* slot,
         Args (*make)(const Operands&, const ConvCase&), int axes, const ConvCase& c) {
  table.add<Args>(slot, {.name = name_of(c, axes),
                         .family = is_integer(c.dtype) ? Family::exact : Family::product,
                         .build = [=](Scene& scene) { return make(operands(scene, c, axes), c); },
                         .formula = [=](const auto& inputs) { return formula(c, axes, inputs); },
                         .big = c.big});
}

template <typename Args>
OpTable table_of(const char* op, Slot<Args> KernelTable::* slot,
                 Args (*make)(const Operands&, const ConvCase&), int axes, bool transpose,
                 const ConvCase& big) {
  OpTable out(op);
  for (ConvCase c : axes == 1 ? cases_of_one_axis() : cases_of_two_axes()) {
    if (transpose) c = transposed(c);
    for (const DType dtype :
         {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::u8, DType::u32}) {
      c.dtype = dtype;
      add(out, slot, make, axes, c);
    }
  }
  add(out, slot, make, axes, big);
  return out;
}

OpTable conv1d_table() {
  return table_of("conv1d", &KernelTable::conv1d, conv1d_args, 1, false,
                  {.in = 80, .out = 64, .size = {1, 500}, .kernel = {1, 3}, .big = true});
}

OpTable conv2d_table() {
  return table_of(
      "conv2d", &KernelTable::conv2d, conv2d_args, 2, false,
      {.in = 64, .out = 64, .size = {32, 32}, .kernel = {3, 3}, .padding = {1, 1}, .big = true});
}

OpTable conv_transpose1d_table() {
  return table_of("conv_transpose1d", &KernelTable::conv_transpose1d, conv_transpose1d_args, 1,
                  true,
                  {.in = 64,
                   .out = 32,
                   .size = {1, 200},
                   .kernel = {1, 16},
                   .stride = {1, 8},
                   .padding = {0, 4},
                   .transposed = true,
                   .big = true});
}

OpTable conv_transpose2d_table() {
  return table_of("conv_transpose2d", &KernelTable::conv_transpose2d, conv_transpose2d_args, 2,
                  true,
                  {.in = 32,
                   .out = 32,
                   .size = {16, 16},
                   .kernel = {4, 4},
                   .stride = {2, 2},
                   .padding = {1, 1},
                   .transposed = true,
                   .big = true});
}

const RegisterOp kConv1d(conv1d_table);
const RegisterOp kConv2d(conv2d_table);
const RegisterOp kConvTranspose1d(conv_transpose1d_table);
const RegisterOp kConvTranspose2d(conv_transpose2d_table);

}  // namespace
}  // namespace rbee::harness
