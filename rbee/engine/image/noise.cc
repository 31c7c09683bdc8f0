#include "rbee/engine/image/noise.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace rbee::engine {
namespace {

// Appends one image's numbers, drawn channel by channel, pixel by pixel.
void append_image(diffusion::Normals& normals, const Shape& shape, std::vector<float>& out) {
  const auto pixels = static_cast<size_t>(shape[1] * shape[2]);
  const auto channels = static_cast<size_t>(shape[3]);
  std::vector<float> drawn(static_cast<size_t>(shape[0]) * pixels * channels);
  normals.fill(drawn);
  for (size_t image = 0; image < static_cast<size_t>(shape[0]); ++image) {
    const float* from = drawn.data() + image * pixels * channels;
    for (size_t i = 0; i < pixels; ++i) {
      for (size_t c = 0; c < channels; ++c) out.push_back(from[c * pixels + i]);
    }
  }
}

// Where a row of `part` values lies in one of `whole`, the same distance from both ends; where the
// difference is odd, as AUTOMATIC1111 rounds it.
struct Overlap {
  int64_t to, from, count;
};
Overlap in_middle(int64_t whole, int64_t part) {
  const int64_t before = (whole - part - (whole < part ? 1 : 0)) / 2;
  if (before >= 0) return {before, 0, part};
  return {0, -before, part + 2 * before};
}

void put_in_middle(std::span<const float> part, const Shape& of_part, std::span<float> whole,
                   const Shape& of_whole) {
  const Overlap rows = in_middle(of_whole[1], of_part[1]);
  const Overlap columns = in_middle(of_whole[2], of_part[2]);
  const int64_t channels = of_part[3];
  for (int64_t row = 0; row < rows.count; ++row) {
    const auto from = part.begin() + ((rows.from + row) * of_part[2] + columns.from) * channels;
    const auto to = whole.begin() + ((rows.to + row) * of_whole[2] + columns.to) * channels;
    std::copy(from, from + columns.count * channels, to);
  }
}

}  // namespace

std::unique_ptr<diffusion::Normals> make_normals(NoiseSource source, uint64_t seed) {
  if (source == NoiseSource::philox) return std::make_unique<diffusion::PhiloxNormals>(seed);
  return std::make_unique<diffusion::TorchNormals>(seed);
}

Tensor normal_latent(diffusion::Normals& normals, const Shape& shape, Device& device) {
  std::vector<float> values;
  append_image(normals, shape, values);
  return from_host<float>(values, shape, device);
}

std::vector<float> between_noises(std::span<const float> low, std::span<const float> high,
                                  const Shape& shape, double strength) {
  const auto rows = static_cast<size_t>(shape[1]);
  const auto columns = static_cast<size_t>(shape[2] * shape[3]);
  std::vector<float> out(low.size());
  for (size_t column = 0; column < columns; ++column) {
    double product = 0, of_low = 0, of_high = 0;
    for (size_t i = column; i < rows * columns; i += columns) {
      product += double{low[i]} * high[i];
      of_low += double{low[i]} * low[i];
      of_high += double{high[i]} * high[i];
    }
    const double angle = std::acos(std::clamp(product / std::sqrt(of_low * of_high), -1.0, 1.0));
    const double sine = std::sin(angle);
    constexpr double kNoAngle = 1e-6;  // the same seed twice
    const bool apart = sine > kNoAngle;
    const double a = apart ? std::sin((1 - strength) * angle) / sine : 1 - strength;
    const double b = apart ? std::sin(strength * angle) / sine : strength;
    for (size_t i = column; i < rows * columns; i += columns) {
      out[i] = static_cast<float>(a * low[i] + b * high[i]);
    }
  }
  return out;
}

BatchNoise::BatchNoise(NoiseSource source, const std::vector<NoiseSeed>& seeds)
    : source_(source), seeds_(seeds) {
  for (const NoiseSeed& seed : seeds_) normals_.push_back(make_normals(source, seed.seed));
}

// AUTOMATIC1111's order of calls.
std::vector<float> BatchNoise::start_of(size_t image, const Shape& shape) {
  const NoiseSeed& seed = seeds_[image];
  const bool resized = seed.height > 0 && (seed.height != shape[1] || seed.width != shape[2]);
  const Shape drawn = resized ? Shape{1, seed.height, seed.width, shape[3]} : shape;
  std::vector<float> own, other, whole;
  append_image(resized ? *make_normals(source_, seed.seed) : *normals_[image], drawn, own);
  if (seed.variation_strength > 0) {
    append_image(*make_normals(source_, seed.variation_seed), drawn, other);
    own = between_noises(own, other, drawn, seed.variation_strength);
  }
  if (!resized) return own;
  append_image(*normals_[image], shape, whole);
  put_in_middle(own, drawn, whole, shape);
  return whole;
}

Tensor BatchNoise::draw_start(const Shape& shape, Device& device) {
  std::vector<float> values;
  for (size_t i = 0; i < normals_.size(); ++i) {
    const auto own = start_of(i, {1, shape[1], shape[2], shape[3]});
    values.insert(values.end(), own.begin(), own.end());
    const NoiseSeed& seed = seeds_[i];
    if (seed.delta != 0) normals_[i] = make_normals(source_, seed.seed + seed.delta);
  }
  return from_host<float>(values, shape, device);
}

Tensor BatchNoise::draw(const Shape& shape, Device& device) {
  std::vector<float> values;
  const Shape one{1, shape[1], shape[2], shape[3]};
  for (const auto& normals : normals_) append_image(*normals, one, values);
  return from_host<float>(values, shape, device);
}

}  // namespace rbee::engine
