#include "rbee/io/image/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "rbee/core/cancel.h"

namespace rbee::io {
namespace {

constexpr double kLobes = 3;

double lanczos(double x) {
  if (x == 0) return 1;
  if (std::abs(x) >= kLobes) return 0;
  const double angle = std::numbers::pi * x;
  return kLobes * std::sin(angle) * std::sin(angle / kLobes) / (angle * angle);
}

// The contributions of a line of the source to one pixel of the result.
struct Taps {
  int32_t first = 0;
  std::vector<float> weights;
};

std::vector<Taps> taps(int32_t from, int32_t to) {
  const double ratio = static_cast<double>(from) / to;
  const double width = std::max(ratio, 1.0);
  std::vector<Taps> out;
  for (int32_t i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * ratio;
    const auto first = std::max(static_cast<int32_t>(centre - kLobes * width), 0);
    const auto last = std::min(static_cast<int32_t>(std::ceil(centre + kLobes * width)), from);
    Taps tap{.first = first, .weights = {}};
    double sum = 0;
    for (int32_t k = first; k < last; ++k) {
      const double weight = lanczos((k + 0.5 - centre) / width);
      tap.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : tap.weights) weight = static_cast<float>(weight / sum);
    out.push_back(std::move(tap));
  }
  return out;
}

// One line of pixels at another length.
// Four values are summed at a time, of which a pixel of three channels has three: `in` must go on
// for kLanes - kChannels values.
constexpr size_t kLanes = 4;

template <size_t kChannels>
void resample_line(const float* in, const std::vector<Taps>& all, float* out) {
  for (const Taps& tap : all) {
    std::array<float, kLanes> sum{};
    const float* pixel = in + static_cast<size_t>(tap.first) * kChannels;
    for (const float weight : tap.weights) {
      for (size_t c = 0; c < kLanes; ++c) sum[c] += weight * pixel[c];
      pixel += kChannels;
    }
    out = std::copy_n(sum.begin(), kChannels, out);
  }
}

uint8_t byte_of(float value) {
  return static_cast<uint8_t>(static_cast<int>(std::clamp(value, 0.0f, 255.0f) + 0.5f));
}

// The rows of a picture, each made of those columns, as many at a time as one row of the result is
// made of: the whole picture in floats would take four times its bytes, twice.
class WideRows {
 public:
  WideRows(const Pixels& pixels, std::vector<Taps> columns, size_t held)
      : pixels_(pixels),
        taps_(std::move(columns)),
        count_(static_cast<size_t>(pixels.width) * static_cast<size_t>(pixels.channels)),
        line_(count_ + kLanes),
        row_(taps_.size() * static_cast<size_t>(pixels.channels)),
        held_(held),
        rows_(held * row_) {}

  // Makes rows up to `end` ready; rows from `first` on are still in use.
  void prepare(int32_t first, int32_t end) {
    for (next_ = std::max(next_, first); next_ < end; ++next_) {
      check_cancelled("image");
      const uint8_t* from = pixels_.values.data() + static_cast<size_t>(next_) * count_;
      std::copy_n(from, count_, line_.begin());
      float* to = rows_.data() + static_cast<size_t>(next_) % held_ * row_;
      if (pixels_.channels == 4) {
        resample_line<4>(line_.data(), taps_, to);
      } else {
        resample_line<3>(line_.data(), taps_, to);
      }
    }
  }
  const float* row(size_t y) const { return rows_.data() + y % held_ * row_; }

 private:
  const Pixels& pixels_;
  const std::vector<Taps> taps_;
  const size_t count_;  // values of a row of pixels_
  std::vector<float> line_;
  const size_t row_, held_;  // values of a row, rows
  std::vector<float> rows_;
  int32_t next_ = 0;
};

// `count` of them.
std::vector<Taps> taps_from(std::vector<Taps> all, int32_t first, int32_t count) {
  all.erase(all.begin() + first + count, all.end());
  all.erase(all.begin(), all.begin() + first);
  return all;
}

// Weights of one pixel of the result as integers of 22 bits after the point, as Pillow rounds
// them.
struct IntegerTaps {
  int32_t first = 0;
  std::vector<int32_t> weights;
};
constexpr int kPoint = 22;

std::vector<IntegerTaps> triangles(int32_t from, int32_t to) {
  const double ratio = static_cast<double>(from) / to;
  const double width = std::max(ratio, 1.0);
  std::vector<IntegerTaps> out;
  for (int32_t i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * ratio;
    const auto first = std::max(static_cast<int32_t>(centre - width + 0.5), 0);
    const auto last = std::min(static_cast<int32_t>(centre + width + 0.5), from);
    std::vector<double> weights;
    double sum = 0;
    for (int32_t k = first; k < last; ++k) {
      weights.push_back(std::max(1 - std::abs((k + 0.5 - centre) / width), 0.0));
      sum += weights.back();
    }
    IntegerTaps tap{.first = first, .weights = {}};
    for (const double weight : weights) {
      tap.weights.push_back(static_cast<int32_t>(0.5 + weight / sum * (1 << kPoint)));
    }
    out.push_back(std::move(tap));
  }
  return out;
}

// As resample() on bytes, rounding after each axis.
std::vector<uint8_t> resample(const std::vector<uint8_t>& values, int32_t lines, int32_t count,
                              int32_t channels, const std::vector<IntegerTaps>& all) {
  const auto to = static_cast<int64_t>(all.size());
  std::vector<uint8_t> out(static_cast<size_t>(to * lines * channels));
  for (int64_t line = 0; line < lines; ++line) {
    check_cancelled("image");
    for (int64_t i = 0; i < to * channels; ++i) {
      const IntegerTaps& tap = all[static_cast<size_t>(i / channels)];
      const uint8_t* in = values.data() + (line * count + tap.first) * channels + i % channels;
      int64_t sum = int64_t{1} << (kPoint - 1);
      for (const int32_t weight : tap.weights) {
        sum += int64_t{weight} * *in;
        in += channels;
      }
      const int64_t at = (i / channels * lines + line) * channels + i % channels;
      out[static_cast<size_t>(at)] =
          static_cast<uint8_t>(std::clamp<int64_t>(sum >> kPoint, 0, 255));
    }
  }
  return out;
}

Pixels resized_by_triangles(const Pixels& pixels, int32_t width, int32_t height) {
  const std::vector<uint8_t> wide = resample(pixels.values, pixels.height, pixels.width,
                                             pixels.channels, triangles(pixels.width, width));
  return {.width = width,
          .height = height,
          .channels = pixels.channels,
          .values = resample(wide, width, pixels.height, pixels.channels,
                             triangles(pixels.height, height))};
}

// The pixel of `from` ones that the centre of pixel i of `to` lies in.
int64_t nearest(int32_t i, int32_t from, int32_t to) {
  return (2 * int64_t{i} + 1) * from / (2 * int64_t{to});
}

}  // namespace

Pixels resized(const Pixels& pixels, int32_t width, int32_t height, Resampler resampler) {
  if (pixels.width == width && pixels.height == height) return pixels;
  if (resampler == Resampler::bilinear) return resized_by_triangles(pixels, width, height);
  const ResizedPart all{width, height, 0, 0, width, height};
  return resampler == Resampler::nearest ? nearest_part(pixels, all) : resized_part(pixels, all);
}

Pixels nearest_part(const Pixels& pixels, const ResizedPart& part) {
  Pixels out{.width = part.columns, .height = part.rows, .channels = pixels.channels, .values = {}};
  out.values.reserve(static_cast<size_t>(part.columns) * static_cast<size_t>(part.rows) *
                     static_cast<size_t>(pixels.channels));
  for (int32_t y = part.top; y < part.top + part.rows; ++y) {
    check_cancelled("image");
    const int64_t row = nearest(y, pixels.height, part.height) * pixels.width;
    for (int32_t x = part.left; x < part.left + part.columns; ++x) {
      const int64_t at = (row + nearest(x, pixels.width, part.width)) * pixels.channels;
      const auto first = pixels.values.begin() + at;
      out.values.insert(out.values.end(), first, first + pixels.channels);
    }
  }
  return out;
}

Pixels resized_part(const Pixels& pixels, const ResizedPart& part) {
  const std::vector<Taps> down = taps_from(taps(pixels.height, part.height), part.top, part.rows);
  size_t most = 0;
  for (const Taps& tap : down) most = std::max(most, tap.weights.size());
  WideRows rows(pixels, taps_from(taps(pixels.width, part.width), part.left, part.columns), most);
  Pixels out{.width = part.columns, .height = part.rows, .channels = pixels.channels, .values = {}};
  std::vector<float> sum(static_cast<size_t>(out.width) * static_cast<size_t>(out.channels));
  out.values.resize(sum.size() * static_cast<size_t>(out.height));
  auto to = out.values.begin();
  for (const Taps& tap : down) {
    check_cancelled("image");
    rows.prepare(tap.first, tap.first + static_cast<int32_t>(tap.weights.size()));
    std::ranges::fill(sum, 0.0f);
    for (size_t k = 0; k < tap.weights.size(); ++k) {
      const float* row = rows.row(static_cast<size_t>(tap.first) + k);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += tap.weights[k] * row[i];
    }
    to = std::ranges::transform(sum, to, byte_of).out;
  }
  return out;
}

}  // namespace rbee::io
