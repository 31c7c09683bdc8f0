#include <algorithm>

#include "backends/cpu/ref/conv.h"
#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

// Calls body(image of x, image of y) with the offset of each (batch, channel).
template <typename Body>
void for_each_image(const UpsampleArgs& args, Body&& body) {
  for_each(body, rows_of(rows_of(args.x)), rows_of(rows_of(args.y)));
}

void nearest(const UpsampleArgs& args) {
  const int64_t in_height = args.x.size(-2);
  const int64_t in_width = args.x.size(-1);
  dispatch_sizes("upsample", args.x.dtype, [&]<typename T>() {
    for_each_image(args, [&](int64_t from, int64_t to) {
      for (int64_t i = 0; i < args.y.size(-2); ++i) {
        const int64_t row = i * in_height / args.y.size(-2);
        for (int64_t j = 0; j < args.y.size(-1); ++j) {
          const int64_t column = j * in_width / args.y.size(-1);
          args.y.as<T>()[to + offset_of(args.y, 0, 0, i, j)] =
              args.x.as<T>()[from + offset_of(args.x, 0, 0, row, column)];
        }
      }
    });
  });
}

// Two neighbours along an axis and the weight of the second.
struct Position {
  int64_t low, high;
  double weight;
};

Position position(int64_t i, int64_t in, int64_t out, bool align_corners) {
  double at = 0;
  if (!align_corners) {
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    at = std::max(0.0, (static_cast<double>(i) + 0.5) * scale - 0.5);
  } else if (out > 1) {
    at = static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  }
  const int64_t low = std::min(static_cast<int64_t>(at), in - 1);
  return {low, std::min(low + 1, in - 1), at - static_cast<double>(low)};
}

template <typename T>
T interpolate(const View& view, const T* x, const Position& row, const Position& column) {
  const auto along_row = [&](int64_t i) {
    const double low = load(x[offset_of(view, 0, 0, i, column.low)]);
    const double high = load(x[offset_of(view, 0, 0, i, column.high)]);
    return low * (1 - column.weight) + high * column.weight;
  };
  return store<T>(along_row(row.low) * (1 - row.weight) + along_row(row.high) * row.weight);
}

void bilinear(const UpsampleArgs& args) {
  const View& x = args.x;
  const View& y = args.y;
  dispatch_floats("upsample", x.dtype, [&]<typename T>() {
    for_each_image(args, [&](int64_t from, int64_t to) {
      for (int64_t i = 0; i < y.sizes[2]; ++i) {
        const Position row = position(i, x.sizes[2], y.sizes[2], args.align_corners);
        for (int64_t j = 0; j < y.sizes[3]; ++j) {
          const Position column = position(j, x.sizes[3], y.sizes[3], args.align_corners);
          y.as<T>()[to + offset_of(y, 0, 0, i, j)] = interpolate(x, x.as<T>() + from, row, column);
        }
      }
    });
  });
}

void upsample(const UpsampleArgs& args, Stream&) {
  if (args.mode == UpsampleMode::bilinear) return bilinear(args);
  UpsampleArgs images = args;
  if (images.x.rank == 3) {  // a length is an image of one row
    images.x = with_axis(args.x, 2);
    images.y = with_axis(args.y, 2);
  }
  nearest(images);
}

}  // namespace

const Impl<UpsampleArgs> ref_upsample = {"ref", never_refuse, upsample};

}  // namespace rbee::cpu
