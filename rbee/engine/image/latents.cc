#include "rbee/engine/image/latents.h"

#include <algorithm>
#include <cmath>

namespace rbee::engine {
namespace {

struct Tap {
  int64_t index = 0;
  float weight = 0;
};
using Taps = std::vector<std::vector<Tap>>;  // of each value of the result

// Keys' cubic convolution (1981).
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Weights that are 0 beyond `support`, and add up to 1.
template <typename Weight>
std::vector<Tap> antialiased(double centre, double scale, double support, int64_t count,
                             const Weight& weight) {
  const double reach = support * scale;
  const auto first = std::max(static_cast<int64_t>(centre - reach + 0.5), int64_t{0});
  const auto last = std::min(static_cast<int64_t>(centre + reach + 0.5), count);
  double sum = 0;
  for (int64_t k = first; k < last; ++k)
    sum += weight((static_cast<double>(k) - centre + 0.5) / scale);
  std::vector<Tap> out;
  for (int64_t k = first; k < last; ++k) {
    out.push_back(
        {k, static_cast<float>(weight((static_cast<double>(k) - centre + 0.5) / scale) / sum)});
  }
  return out;
}

std::vector<Tap> linear_taps(double at, int64_t count) {
  at = std::clamp(at, 0.0, static_cast<double>(count - 1));
  const auto index = static_cast<int64_t>(at);
  const auto share = static_cast<float>(at - static_cast<double>(index));
  return {{index, 1 - share}, {std::min(index + 1, count - 1), share}};
}

std::vector<Tap> cubic_taps(double at, int64_t count) {
  constexpr double kSharpness = -0.75;  // PyTorch's
  const auto index = static_cast<int64_t>(std::floor(at));
  std::vector<Tap> out;
  for (int64_t k = index - 1; k <= index + 2; ++k) {
    const double weight = cubic(at - static_cast<double>(k), kSharpness);
    out.push_back({std::clamp(k, int64_t{0}, count - 1), static_cast<float>(weight)});
  }
  return out;
}

std::vector<Tap> taps_of(int64_t i, int64_t to, int64_t count, LatentFilter filter) {
  constexpr double kSharpness = -0.5;  // PyTorch's where it widens, and Pillow's
  const double ratio = static_cast<double>(count) / static_cast<double>(to);
  const double centre = (static_cast<double>(i) + 0.5) * ratio, scale = std::max(ratio, 1.0);
  switch (filter) {
    case LatentFilter::bilinear:
      return linear_taps(centre - 0.5, count);
    case LatentFilter::bilinear_antialiased:
      return antialiased(centre, scale, 1, count,
                         [](double x) { return std::max(1 - std::abs(x), 0.0); });
    case LatentFilter::bicubic:
      return cubic_taps(centre - 0.5, count);
    case LatentFilter::bicubic_antialiased:
      return antialiased(centre, scale, 2, count, [](double x) { return cubic(x, kSharpness); });
    case LatentFilter::nearest:
      return {{i * count / to, 1}};
    case LatentFilter::nearest_exact:
      break;
  }
  return {{std::min(static_cast<int64_t>(centre), count - 1), 1}};
}

Taps all_taps(int64_t to, int64_t count, LatentFilter filter) {
  Taps out;
  for (int64_t i = 0; i < to; ++i) out.push_back(taps_of(i, to, count, filter));
  return out;
}

}  // namespace

std::vector<float> enlarged(std::span<const float> values, const Shape& from, int64_t height,
                            int64_t width, LatentFilter filter) {
  const int64_t rows = from[1], columns = from[2], channels = from[3];
  const Taps down = all_taps(height, rows, filter), right = all_taps(width, columns, filter);
  std::vector<float> out;
  out.reserve(static_cast<size_t>(from[0] * height * width * channels));
  for (int64_t line = 0; line < from[0] * height; ++line) {
    const int64_t first = line / height * rows;
    for (const std::vector<Tap>& across : right) {
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (const Tap& row : down[static_cast<size_t>(line % height)]) {
          float part = 0;
          for (const Tap& column : across) {
            const int64_t at = ((first + row.index) * columns + column.index) * channels + c;
            part += column.weight * values[static_cast<size_t>(at)];
          }
          sum += row.weight * part;
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

}  // namespace rbee::engine
