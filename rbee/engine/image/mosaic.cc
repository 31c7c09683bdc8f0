#include "rbee/engine/image/mosaic.h"

#include <algorithm>

namespace rbee::engine {
namespace {

// 1 inside a tile, falling towards edges that another tile shares.
float fade(int64_t at, int64_t length, int64_t ramp, bool first, bool last) {
  float weight = 1;
  const auto rising = [&](int64_t from_edge) {
    return std::min(1.0f, (static_cast<float>(from_edge) + 0.5f) / static_cast<float>(ramp));
  };
  if (!first) weight *= rising(at);
  if (!last) weight *= rising(length - 1 - at);
  return weight;
}

}  // namespace

std::vector<int64_t> tile_starts(int64_t length, int64_t tile, int64_t overlap) {
  std::vector<int64_t> out{0};
  while (out.back() + tile < length) {
    out.push_back(std::min(out.back() + tile - overlap, length - tile));
  }
  return out;
}

std::vector<Area> areas_of(int64_t height, int64_t width, int64_t tile, int64_t overlap) {
  std::vector<Area> out;
  const int64_t high = std::min(tile, height), wide = std::min(tile, width);
  for (const int64_t top : tile_starts(height, high, overlap)) {
    for (const int64_t left : tile_starts(width, wide, overlap)) {
      out.push_back({left, top, wide, high});
    }
  }
  return out;
}

Mosaic::Mosaic(int64_t width, int64_t height, int64_t channels, int64_t ramp)
    : width_(width), height_(height), channels_(static_cast<size_t>(channels)), ramp_(ramp) {}

size_t Mosaic::pixel(int64_t row, int64_t column) const {
  return static_cast<size_t>((row - first_) * width_ + column);
}

void Mosaic::drop_above(int64_t row) {
  const auto pixels = static_cast<std::ptrdiff_t>(pixel(row, 0));
  weights_.erase(weights_.begin(), weights_.begin() + pixels);
  sums_.erase(sums_.begin(), sums_.begin() + pixels * static_cast<std::ptrdiff_t>(channels_));
  first_ = row;
}

void Mosaic::add(std::span<const float> tile, const Area& area) {
  const size_t held = std::max(weights_.size(), pixel(area.top + area.height, 0));
  weights_.resize(held);
  sums_.resize(held * channels_);
  for (int64_t y = 0; y < area.height; ++y) {
    const bool last_row = area.top + area.height == height_;
    const float down = fade(y, area.height, ramp_, area.top == 0, last_row);
    for (int64_t x = 0; x < area.width; ++x) {
      const bool last = area.left + area.width == width_;
      const float weight = down * fade(x, area.width, ramp_, area.left == 0, last);
      const size_t to = pixel(area.top + y, area.left + x);
      const auto from = static_cast<size_t>(y * area.width + x);
      for (size_t c = 0; c < channels_; ++c) {
        sums_[to * channels_ + c] += weight * tile[from * channels_ + c];
      }
      weights_[to] += weight;
    }
  }
}

std::vector<float> Mosaic::take() {
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] /= weights_[i / channels_];
  return std::move(sums_);
}

std::vector<float> Mosaic::finish(const Area& part) const {
  std::vector<float> out;
  out.reserve(static_cast<size_t>(part.height * part.width) * channels_);
  for (int64_t y = part.top; y < part.top + part.height; ++y) {
    for (int64_t x = part.left; x < part.left + part.width; ++x) {
      const size_t at = pixel(y, x);
      for (size_t c = 0; c < channels_; ++c) {
        out.push_back(sums_[at * channels_ + c] / weights_[at]);
      }
    }
  }
  return out;
}

}  // namespace rbee::engine
