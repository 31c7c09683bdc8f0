#include "backends/cpu/ref/layer_norm.h"

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

struct Statistics {
  double mean = 0;
  double scale = 0;  // 1 / sqrt(variance + eps)
};

// In two passes: the mean of squares minus the square of the mean would cancel.
template <typename T>
Statistics statistics(const T* x, const View& part, float eps) {
  const auto count = static_cast<double>(part.numel());
  double sum = 0, squares = 0;
  for_each([&](int64_t at) { sum += load(x[at]); }, part);
  const double mean = sum / count;
  for_each(
      [&](int64_t at) {
        const double centred = load(x[at]) - mean;
        squares += centred * centred;
      },
      part);
  return {mean, 1 / std::sqrt(squares / count + eps)};
}

// Element i of an optional vector.
template <typename T>
double value_or(const View& vector, int64_t i, double absent) {
  return vector ? load(vector.as<const T>()[i * vector.strides[0]]) : absent;
}

template <typename T>
T normalised(T x, const Statistics& of, double weight, double bias) {
  return store<T>((load(x) - of.mean) * of.scale * weight + bias);
}

template <typename T>
void layer_norm_loop(const LayerNormArgs& args) {
  View row = args.x;
  for (int i = 0; i + 1 < row.rank; ++i) row.sizes[i] = 1;
  const auto one = [&](int64_t at_y, int64_t at_x) {
    const T* x = args.x.as<const T>() + at_x;
    T* y = args.y.as<T>() + at_y;
    const Statistics of = statistics(x, row, args.eps);
    for (int64_t i = 0; i < args.x.size(-1); ++i) {
      y[i * args.y.stride(-1)] =
          normalised(x[i * args.x.stride(-1)], of, value_or<T>(args.weight, i, 1),
                     value_or<T>(args.bias, i, 0));
    }
  };
  for_each(one, rows_of(args.y), rows_of(args.x));
}

void run_layer_norm(const LayerNormArgs& args, Stream&) {
  dispatch_floats("layer_norm", args.x.dtype, [&]<typename T>() { layer_norm_loop<T>(args); });
}

// Channels [first, first + count) of one image.
View channels_of(View view, int64_t count) {
  view.sizes[0] = 1;
  view.sizes[1] = count;
  return view;
}

template <typename T>
void normalise_group(const GroupNormArgs& args, int64_t image, int64_t first, int64_t count) {
  const View part_x = channels_of(args.x, count), channel_x = channels_of(args.x, 1);
  const View channel_y = channels_of(args.y, 1);
  const T* x = args.x.as<const T>() + image * args.x.strides[0] + first * args.x.strides[1];
  T* y = args.y.as<T>() + image * args.y.strides[0] + first * args.y.strides[1];
  const Statistics of = statistics(x, part_x, args.eps);
  for (int64_t c = 0; c < count; ++c) {
    const double weight = value_or<T>(args.weight, first + c, 1);
    const double bias = value_or<T>(args.bias, first + c, 0);
    const T* from = x + c * args.x.strides[1];
    T* to = y + c * args.y.strides[1];
    for_each(
        [&](int64_t at_y, int64_t at_x) { to[at_y] = normalised(from[at_x], of, weight, bias); },
        channel_y, channel_x);
  }
}

void run_group_norm(const GroupNormArgs& args, Stream&) {
  const int64_t count = args.x.size(1) / args.groups;
  dispatch_floats("group_norm", args.x.dtype, [&]<typename T>() {
    for (int64_t image = 0; image < args.x.size(0); ++image) {
      for (int64_t group = 0; group < args.groups; ++group) {
        normalise_group<T>(args, image, group * count, count);
      }
    }
  });
}

}  // namespace

const Impl<LayerNormArgs> ref_layer_norm = {"ref", never_refuse<LayerNormArgs>, run_layer_norm};
const Impl<GroupNormArgs> ref_group_norm = {"ref", never_refuse<GroupNormArgs>, run_group_norm};

}  // namespace rbee::cpu
