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

// A picture, or its latent, under construction from tiles of it, from the top: memory is taken as
// they come.
class Mosaic {
 public:
  // ramp: units over which neighbours are faded into each other
  Mosaic(int64_t width, int64_t height, int64_t channels, int64_t ramp);

  // tile: (area.height, area.width, channels)
  void add(std::span<const float> tile, const Area& area);
  // The values of a part.
  std::vector<float> finish(const Area& part) const;
  // Gives the memory of rows above that one back; nothing is added to them or asked of them again.
  void drop_above(int64_t row);

 private:
  size_t pixel(int64_t row, int64_t column) const;

  int64_t width_, height_;
  size_t channels_;
  int64_t ramp_;
  int64_t first_ = 0;  // the uppermost row that is held
  std::vector<float> sums_, weights_;
};

}  // namespace rbee::engine
