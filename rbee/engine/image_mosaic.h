#pragma once
// Pictures put together from tiles that overlap and are faded into each other.

#include <cstdint>
#include <span>
#include <vector>

namespace rbee::engine {

// Tiles that cover `length` units: their first units, `overlap` units or more shared by neighbours.
std::vector<int64_t> tile_starts(int64_t length, int64_t tile, int64_t overlap);

// Of any unit.
struct Area {
  int64_t left, top, width, height;
};

// Tiles of a picture of height x width units.
std::vector<Area> areas_of(int64_t height, int64_t width, int64_t tile, int64_t overlap);

// A picture, or its latent, under construction from tiles of it.
class Mosaic {
 public:
  // ramp: units over which neighbours are faded into each other
  Mosaic(int64_t width, int64_t height, int64_t channels, int64_t ramp);

  // tile: (area.height, area.width, channels)
  void add(std::span<const float> tile, const Area& area);
  // The values of a part.
  std::vector<float> finish(const Area& part) const;

 private:
  int64_t width_, height_;
  size_t channels_;
  int64_t ramp_;
  std::vector<float> sums_, weights_;
};

}  // namespace rbee::engine
