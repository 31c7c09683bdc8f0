#include "backends/cpu/ref/conv.h"

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

// A length becomes a height of 1 and a width, so that one kernel defines both ranks.
constexpr int kHeightAxis = 2;

View as_2d(const View& view) {
  return view ? with_axis(view, kHeightAxis) : view;
}

// Calls body(batch, channel, row, column) for each element of a rank-4 view.
template <typename Body>
void for_each_index(const View& y, Body&& body) {
  for (int64_t n = 0; n < y.sizes[0]; ++n) {
    for (int64_t c = 0; c < y.sizes[1]; ++c) {
      for (int64_t i = 0; i < y.sizes[2] * y.sizes[3]; ++i) {
        body(n, c, i / y.sizes[3], i % y.sizes[3]);
      }
    }
  }
}

template <typename T>
Sum<T> bias_of(const View& bias, int64_t channel) {
  return bias ? load(bias.as<T>()[channel * bias.strides[0]]) : Sum<T>{0};
}

// Adds the window's products of one input channel of x, weight channel w, with weights of `filter`.
template <typename T>
Sum<T> correlate(const Conv2dArgs& args, const T* x, const T* filter, int64_t row, int64_t column) {
  Sum<T> sum = 0;
  for (int64_t i = 0; i < args.weight.sizes[2]; ++i) {
    const int64_t from_row = row * args.stride_h - args.padding_h + i * args.dilation_h;
    if (from_row < 0 || from_row >= args.x.sizes[2]) continue;
    for (int64_t j = 0; j < args.weight.sizes[3]; ++j) {
      const int64_t from_column = column * args.stride_w - args.padding_w + j * args.dilation_w;
      if (from_column < 0 || from_column >= args.x.sizes[3]) continue;
      const Sum<T> value = load(x[offset_of(args.x, 0, 0, from_row, from_column)]);
      sum += value * load(filter[offset_of(args.weight, 0, 0, i, j)]);
    }
  }
  return sum;
}

void conv2d(const Conv2dArgs& args, Stream&) {
  const int64_t group_in = args.weight.sizes[1];
  const int64_t group_out = args.weight.sizes[0] / args.groups;
  dispatch_numbers("conv2d", args.x.dtype, [&]<typename T>() {
    for_each_index(args.y, [&](int64_t n, int64_t c, int64_t row, int64_t column) {
      const int64_t first = c / group_out * group_in;  // input channel of the group
      Sum<T> sum = bias_of<T>(args.bias, c);
      for (int64_t k = 0; k < group_in; ++k) {
        const T* x = args.x.as<T>() + offset_of(args.x, n, first + k);
        const T* filter = args.weight.as<T>() + offset_of(args.weight, c, k);
        sum += correlate(args, x, filter, row, column);
      }
      args.y.as<T>()[offset_of(args.y, n, c, row, column)] = store<T>(sum);
    });
  });
}

// The input index whose window writes output index `to` through tap `tap`; -1 when there is none.
int64_t source(int64_t to, int64_t tap, int64_t stride, int64_t padding, int64_t dilation,
               int64_t size) {
  const int64_t scaled = to + padding - tap * dilation;
  if (scaled < 0 || scaled % stride != 0 || scaled / stride >= size) return -1;
  return scaled / stride;
}

template <typename T>
Sum<T> correlate_transposed(const ConvTranspose2dArgs& args, const T* x, const T* filter,
                            int64_t row, int64_t column) {
  Sum<T> sum = 0;
  for (int64_t i = 0; i < args.weight.sizes[2]; ++i) {
    const int64_t from_row =
        source(row, i, args.stride_h, args.padding_h, args.dilation_h, args.x.sizes[2]);
    if (from_row < 0) continue;
    for (int64_t j = 0; j < args.weight.sizes[3]; ++j) {
      const int64_t from_column =
          source(column, j, args.stride_w, args.padding_w, args.dilation_w, args.x.sizes[3]);
      if (from_column < 0) continue;
      const Sum<T> value = load(x[offset_of(args.x, 0, 0, from_row, from_column)]);
      sum += value * load(filter[offset_of(args.weight, 0, 0, i, j)]);
    }
  }
  return sum;
}

void conv_transpose2d(const ConvTranspose2dArgs& args, Stream&) {
  const int64_t group_in = args.weight.sizes[0] / args.groups;
  const int64_t group_out = args.weight.sizes[1];
  dispatch_numbers("conv_transpose2d", args.x.dtype, [&]<typename T>() {
    for_each_index(args.y, [&](int64_t n, int64_t c, int64_t row, int64_t column) {
      const int64_t first = c / group_out * group_in;  // input channel of the group
      Sum<T> sum = bias_of<T>(args.bias, c);
      for (int64_t k = first; k < first + group_in; ++k) {
        const T* x = args.x.as<T>() + offset_of(args.x, n, k);
        const T* filter = args.weight.as<T>() + offset_of(args.weight, k, c % group_out);
        sum += correlate_transposed(args, x, filter, row, column);
      }
      args.y.as<T>()[offset_of(args.y, n, c, row, column)] = store<T>(sum);
    });
  });
}

void conv1d(const Conv1dArgs& args, Stream& stream) {
  conv2d({.x = as_2d(args.x),
          .weight = as_2d(args.weight),
          .bias = args.bias,
          .y = as_2d(args.y),
          .stride_w = args.stride,
          .padding_w = args.padding,
          .dilation_w = args.dilation,
          .groups = args.groups},
         stream);
}

void conv_transpose1d(const ConvTranspose1dArgs& args, Stream& stream) {
  conv_transpose2d({.x = as_2d(args.x),
                    .weight = as_2d(args.weight),
                    .bias = args.bias,
                    .y = as_2d(args.y),
                    .stride_w = args.stride,
                    .padding_w = args.padding,
                    .output_padding_w = args.output_padding,
                    .dilation_w = args.dilation,
                    .groups = args.groups},
                   stream);
}

}  // namespace

const Impl<Conv1dArgs> ref_conv1d = {"ref", never_refuse, conv1d};
const Impl<Conv2dArgs> ref_conv2d = {"ref", never_refuse, conv2d};
const Impl<ConvTranspose1dArgs> ref_conv_transpose1d = {"ref", never_refuse, conv_transpose1d};
const Impl<ConvTranspose2dArgs> ref_conv_transpose2d = {"ref", never_refuse, conv_transpose2d};

}  // namespace rbee::cpu
