#include "backends/cpu/ref/image.h"

#include <span>
#include <vector>

#include "backends/api/dispatch_blocks.h"
#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"
#include "backends/shared/scalar.h"

namespace rbee::cpu {
namespace {

// Elements of a float view, or of contiguous blocks, in row-major order, exact.
std::vector<double> read(const View& view) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(view.numel()));
  if (is_quantized(view.dtype)) {
    dispatch_blocks("image_conv", view.dtype, [&]<typename Block>() {
      const int64_t blocks = view.numel() / Block::kElements;
      for (const Block& block : std::span(view.as<Block>(), static_cast<size_t>(blocks))) {
        for (int i = 0; i < Block::kElements; ++i) values.push_back(shared::dequantize(block, i));
      }
    });
    return values;
  }
  dispatch_floats("image_conv", view.dtype, [&]<typename T>() {
    for_each([&](int64_t at) { values.push_back(load(view.as<T>()[at])); }, view);
  });
  return values;
}

// The reads along one axis: `size` pixels, each `scale` times.
struct SourceAxis {
  int64_t size, scale, stride, padding;

  // The pixel under tap `tap` of output `to`; -1 outside.
  int64_t of(int64_t to, int64_t tap) const {
    const int64_t at = to * stride - padding + tap;
    return at < 0 || at >= size * scale ? -1 : at / scale;
  }
};

template <typename T>
double correlate(const ImageConvArgs& args, const double* filter, int64_t n, int64_t row,
                 int64_t column) {
  const int64_t scale = args.upsample ? 2 : 1;
  const SourceAxis rows{args.x.sizes[1], scale, args.stride, args.pad_top};
  const SourceAxis columns{args.x.sizes[2], scale, args.stride, args.pad_left};
  const int64_t kernel_w = args.weight.sizes[2], in = args.x.sizes[3];
  double sum = 0;
  for (int64_t tap = 0; tap < args.weight.sizes[1] * kernel_w; ++tap) {
    const int64_t i = rows.of(row, tap / kernel_w), j = columns.of(column, tap % kernel_w);
    if (i < 0 || j < 0) continue;
    const T* pixel = args.x.as<T>() + offset_of(args.x, n, i, j);
    for (int64_t c = 0; c < in; ++c) {
      sum += load(pixel[c * args.x.strides[3]]) * filter[tap * in + c];
    }
  }
  return sum;
}

template <typename T>
double addends(const ImageConvArgs& args, int64_t n, int64_t row, int64_t column, int64_t o) {
  double sum = 0;
  if (args.bias) sum += load(args.bias.as<T>()[offset_of(args.bias, o)]);
  if (args.channel_add) sum += load(args.channel_add.as<T>()[offset_of(args.channel_add, n, o)]);
  if (args.residual) {
    sum += load(args.residual.as<T>()[offset_of(args.residual, n, row, column, o)]);
  }
  return sum;
}

const char* refuse_conv(const ImageConvArgs& args) {
  return args.weight.packing != 0 ? "reads plain weights only" : nullptr;
}

void run_conv(const ImageConvArgs& args, Stream&) {
  const std::vector<double> weight = read(args.weight);
  const View& y = args.y;
  const int64_t out = y.sizes[3];
  const int64_t depth = args.weight.sizes[1] * args.weight.sizes[2] * args.weight.sizes[3];
  dispatch_floats("image_conv", args.x.dtype, [&]<typename T>() {
    for (int64_t p = 0; p < y.sizes[0] * y.sizes[1] * y.sizes[2]; ++p) {
      const int64_t n = p / (y.sizes[1] * y.sizes[2]);
      const int64_t row = p / y.sizes[2] % y.sizes[1], column = p % y.sizes[2];
      for (int64_t o = 0; o < out; ++o) {
        const double sum = correlate<T>(args, weight.data() + o * depth, n, row, column);
        y.as<T>()[offset_of(y, n, row, column, o)] =
            store<T>(sum + addends<T>(args, n, row, column, o));
      }
    }
  });
}

// One group of one image: (pixels, channels of the group).
template <typename T>
void normalise(const ImageGroupNormArgs& args, const View& x, const View& y, int64_t first) {
  const auto count = static_cast<double>(x.numel());
  double sum = 0, squares = 0;
  for_each([&](int64_t at) { sum += load(x.as<T>()[at]); }, x);
  const double mean = sum / count;
  const auto square = [&](int64_t at) {
    const double centred = load(x.as<T>()[at]) - mean;
    squares += centred * centred;
  };
  for_each(square, x);
  const double scale = 1 / std::sqrt(squares / count + args.eps);
  for (int64_t p = 0; p < x.sizes[0]; ++p) {
    for (int64_t c = 0; c < x.sizes[1]; ++c) {
      double value = (load(x.as<T>()[offset_of(x, p, c)]) - mean) * scale;
      if (args.weight) value *= load(args.weight.as<T>()[offset_of(args.weight, first + c)]);
      if (args.bias) value += load(args.bias.as<T>()[offset_of(args.bias, first + c)]);
      if (args.activation == NormActivation::silu) value = shared::silu(value);
      y.as<T>()[offset_of(y, p, c)] = store<T>(value);
    }
  }
}

// Channels [first, first + count) of image n, (pixels, count).
template <typename T>
View group_of(const View& view, int64_t n, int64_t first, int64_t count) {
  View group = without_axis(view, 0);
  group.data = view.as<T>() + offset_of(view, n, 0, first);
  group.sizes[1] = count;
  return group;
}

void run_norm(const ImageGroupNormArgs& args, Stream&) {
  const int64_t count = args.x.sizes[2] / args.groups;
  if (args.x.numel() == 0) return;
  dispatch_floats("image_group_norm", args.x.dtype, [&]<typename T>() {
    for (int64_t i = 0; i < args.x.sizes[0] * args.groups; ++i) {
      const int64_t n = i / args.groups, first = i % args.groups * count;
      normalise<T>(args, group_of<T>(args.x, n, first, count), group_of<T>(args.y, n, first, count),
                   first);
    }
  });
}

}  // namespace

const Impl<ImageConvArgs> ref_image_conv{"ref", &refuse_conv, &run_conv};
const Impl<ImageGroupNormArgs> ref_image_group_norm{"ref", never_refuse<ImageGroupNormArgs>,
                                                    &run_norm};

}  // namespace rbee::cpu
