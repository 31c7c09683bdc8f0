#include "rbee/engine/image/repaint.h"

#include <algorithm>
#include <cmath>

namespace rbee::engine {
namespace {

constexpr size_t kPlanes = 4;  // colours times opacity, and opacity
constexpr int32_t kStripRows = 256;

// Along one axis: [first, first + length) made `wanted` long, without the fraction, within [0,
// limit), about its middle.
void lengthen(int32_t& first, int32_t& length, double wanted, int32_t limit) {
  const int32_t longer = std::clamp(static_cast<int32_t>(wanted), length, limit);
  first = std::clamp(first - (longer - length) / 2, 0, limit - longer);
  length = longer;
}

// The place of a resized picture in one of another size.
struct Inner {
  int32_t columns = 0, rows = 0;
  int32_t left = 0, top = 0;
};

Inner inner_of(int32_t from_width, int32_t from_height, int32_t width, int32_t height, Fit how) {
  constexpr int64_t kMostPixels = 16384;
  const int64_t across = int64_t{from_width} * height, down = int64_t{from_height} * width;
  if (how == Fit::stretch || across == down) return {width, height, 0, 0};
  // The side that is the target's own; the other one keeps the ratio.
  const bool by_height = (across > down) == (how == Fit::crop);
  const int64_t own_width = by_height ? std::max<int64_t>(across / from_height, 1) : width;
  const int64_t own_height = by_height ? height : std::max<int64_t>(down / from_width, 1);
  check(std::max(own_width, own_height) <= kMostPixels, "resize_mode", from_width, " x ",
        from_height, " pixels are too long to be cut to ", width, " x ", height);
  const auto columns = static_cast<int32_t>(own_width), rows = static_cast<int32_t>(own_height);
  return {columns, rows, width / 2 - columns / 2, height / 2 - rows / 2};
}

// What stands there is cut off at the edges, or its outermost pixels go on to them.
template <typename T>
std::vector<T> laid_out(const std::vector<T>& pixels, const Inner& inner, int32_t width,
                        int32_t height, int32_t channels) {
  std::vector<T> out;
  out.reserve(static_cast<size_t>(width) * static_cast<size_t>(height * channels));
  for (int32_t y = 0; y < height; ++y) {
    const int64_t row = int64_t{std::clamp(y - inner.top, 0, inner.rows - 1)} * inner.columns;
    for (int32_t x = 0; x < width; ++x) {
      const int64_t at = row + std::clamp(x - inner.left, 0, inner.columns - 1);
      const auto pixel = pixels.begin() + at * channels;
      out.insert(out.end(), pixel, pixel + channels);
    }
  }
  return out;
}

// Sums over a window that reaches `radius` to both sides, whose outermost values count by the
// radius's fraction; at the ends the last value goes on. Lines of `count` values, `step` apart.
void box_line(const float* in, float* out, int32_t count, size_t step, double radius) {
  const auto whole = static_cast<int32_t>(radius);
  const double part = radius - whole, scale = 1 / (2 * radius + 1);
  const auto at = [&](int32_t i) {
    return double{in[static_cast<size_t>(std::clamp(i, 0, count - 1)) * step]};
  };
  double sum = 0;
  for (int32_t i = -whole; i <= whole; ++i) sum += at(i);
  for (int32_t i = 0; i < count; ++i) {
    const double ends = part * (at(i - whole - 1) + at(i + whole + 1));
    out[static_cast<size_t>(i) * step] = static_cast<float>((sum + ends) * scale);
    sum += at(i + whole + 1) - at(i - whole);
  }
}

// The radius of a box that, `passes` times, has a Gaussian's deviation (Gwosdek et al. 2011).
double box_radius(double deviation, int passes) {
  const double variance = deviation * deviation / passes;
  const double whole = std::floor((std::sqrt(12 * variance + 1) - 1) / 2);
  const double next = whole + 1;
  return whole + (2 * whole + 1) * (whole * next - 3 * variance) / (6 * (variance - next * next));
}

struct Planes {
  int32_t width, height;
  std::vector<float> values;  // kPlanes a pixel

  void blur(double deviation) {
    constexpr int kPasses = 3;
    if (deviation == 0) return;
    const double radius = box_radius(deviation, kPasses);
    std::vector<float> next(values.size());
    const size_t line = static_cast<size_t>(width) * kPlanes;
    for (int pass = 0; pass < kPasses; ++pass) {
      for (size_t start = 0; start < values.size(); start += line) {
        for (size_t c = 0; c < kPlanes; ++c) {
          box_line(&values[start + c], &next[start + c], width, kPlanes, radius);
        }
      }
      for (size_t i = 0; i < line; ++i) box_line(&next[i], &values[i], height, line, radius);
    }
  }

  // Puts `above` over this.
  void cover(const Planes& above) {
    for (size_t i = 0; i < values.size(); i += kPlanes) {
      const float open = 1 - above.values[i + kPlanes - 1];
      for (size_t c = 0; c < kPlanes; ++c) {
        values[i + c] = above.values[i + c] + values[i + c] * open;
      }
    }
  }
};

Planes outside_of(const io::Pixels& pixels, const Mask& mask) {
  Planes out{pixels.width, pixels.height, {}};
  out.values.reserve(mask.values.size() * kPlanes);
  for (size_t i = 0; i < mask.values.size(); ++i) {
    const uint8_t* p = pixels.values.data() + i * static_cast<size_t>(pixels.channels);
    const float kept = 1 - static_cast<float>(mask.values[i]) / kAllPainted;
    for (size_t c = 0; c < 3; ++c) out.values.push_back(kept * static_cast<float>(p[c]));
    out.values.push_back(kept);
  }
  return out;
}

}  // namespace

Region region_around(const Mask& mask, int32_t padding, int32_t width, int32_t height) {
  int32_t left = mask.width, top = mask.height, right = -1, bottom = -1;
  for (int32_t y = 0; y < mask.height; ++y) {
    for (int32_t x = 0; x < mask.width; ++x) {
      const size_t at =
          static_cast<size_t>(y) * static_cast<size_t>(mask.width) + static_cast<size_t>(x);
      if (mask.values[at] == 0) continue;
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = y;
    }
  }
  if (right < 0) return {0, 0, mask.width, mask.height};
  Region out{.left = std::max(left - padding, 0), .top = std::max(top - padding, 0)};
  out.width = std::min(right + 1 + padding, mask.width) - out.left;
  out.height = std::min(bottom + 1 + padding, mask.height) - out.top;
  const double ratio = static_cast<double>(width) / height;
  lengthen(out.left, out.width, out.height * ratio, mask.width);
  lengthen(out.top, out.height, out.width / ratio, mask.height);
  return out;
}

io::Pixels cropped(const io::Pixels& pixels, const Region& region) {
  io::Pixels out{
      .width = region.width, .height = region.height, .channels = pixels.channels, .values = {}};
  out.values.reserve(static_cast<size_t>(region.width) * static_cast<size_t>(region.height) *
                     static_cast<size_t>(pixels.channels));
  for (int32_t y = 0; y < region.height; ++y) {
    const int64_t first = (int64_t{region.top + y} * pixels.width + region.left) * pixels.channels;
    const auto row = pixels.values.begin() + first;
    out.values.insert(out.values.end(), row, row + int64_t{region.width} * pixels.channels);
  }
  return out;
}

Mask cropped(const Mask& mask, const Region& region) {
  Mask out{.width = region.width, .height = region.height, .values = {}};
  out.values.reserve(static_cast<size_t>(region.width) * static_cast<size_t>(region.height));
  for (int32_t y = 0; y < region.height; ++y) {
    const auto row = mask.values.begin() + int64_t{region.top + y} * mask.width + region.left;
    out.values.insert(out.values.end(), row, row + region.width);
  }
  return out;
}

io::Pixels fitted(const io::Pixels& pixels, int32_t width, int32_t height, Fit how) {
  if (pixels.width == width && pixels.height == height) return pixels;
  const Inner inner = inner_of(pixels.width, pixels.height, width, height, how);
  if (inner.columns >= width && inner.rows >= height) {
    return resized_part(pixels,
                        {inner.columns, inner.rows, -inner.left, -inner.top, width, height});
  }
  const io::Pixels own = resized(pixels, inner.columns, inner.rows);
  return {.width = width,
          .height = height,
          .channels = own.channels,
          .values = laid_out(own.values, inner, width, height, own.channels)};
}

Mask fitted(const Mask& mask, int32_t width, int32_t height, Fit how) {
  const Inner inner = inner_of(mask.width, mask.height, width, height, how);
  const Mask own = resized(mask, inner.columns, inner.rows);
  if (own.width == width && own.height == height) return own;
  return {width, height, laid_out(own.values, inner, width, height, 1)};
}

io::Pixels pasted(const io::Pixels& part, const io::Pixels& whole, const Region& region,
                  const Mask& share) {
  const Inner inner = inner_of(part.width, part.height, region.width, region.height, Fit::crop);
  io::Pixels out = without_opacity(whole);
  const uint8_t* shown = share.values.data();
  // A strip at a time: the region may have many times the part's pixels.
  for (int32_t top = 0; top < region.height; top += kStripRows) {
    const io::Pixels strip =
        io::resized_part(part, {inner.columns, inner.rows, -inner.left, top - inner.top,
                                region.width, std::min(kStripRows, region.height - top)});
    const uint8_t* from = strip.values.data();
    for (int32_t y = 0; y < strip.height; ++y) {
      const int64_t row = int64_t{region.top + top + y} * whole.width + region.left;
      uint8_t* to = out.values.data() + row * out.channels;
      for (int32_t x = 0; x < region.width; ++x, ++shown, to += 3, from += strip.channels) {
        for (size_t c = 0; c < 3; ++c) {
          const int sum = *shown * from[c] + (kAllPainted - *shown) * to[c];
          to[c] = static_cast<uint8_t>((sum + kAllPainted / 2) / kAllPainted);
        }
      }
    }
  }
  return out;
}

io::Pixels filled_around(const io::Pixels& pixels, const Mask& mask) {
  struct Layer {
    double deviation;  // pixels
    int times;
  };
  constexpr Layer kLayers[] = {{256, 1}, {64, 1}, {16, 2}, {4, 4}, {2, 2}, {0, 1}};
  const Planes outside = outside_of(pixels, mask);
  Planes sum{pixels.width, pixels.height, std::vector<float>(outside.values.size())};
  for (const Layer& layer : kLayers) {
    Planes soft = outside;
    soft.blur(layer.deviation);
    for (int i = 0; i < layer.times; ++i) sum.cover(soft);
  }
  io::Pixels out{.width = pixels.width, .height = pixels.height, .channels = 3, .values = {}};
  for (size_t i = 0; i < sum.values.size(); i += kPlanes) {
    const float opacity = sum.values[i + kPlanes - 1];
    for (size_t c = 0; c < 3; ++c) {
      const float value = opacity > 0 ? sum.values[i + c] / opacity : 0;
      out.values.push_back(static_cast<uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f))));
    }
  }
  return out;
}

Mask widened(const Mask& softened) {
  Mask out = softened;
  for (uint8_t& value : out.values) {
    value = static_cast<uint8_t>(std::min<int>(kAllPainted, 2 * value));
  }
  return out;
}

}  // namespace rbee::engine
