#pragma once
// Puts pictures together from overlapping tiles that fade into each other.

#include <cstdint>
#include <span>
#include <vector>

namespace rbee::engine {

// First units of the tiles that cover `length` units; neighbours share at least `overlap` units.
std::vector<int64_t> tile_starts(int64_t length, int64_t tile, int64_t overlap);

// Of any unit.
struct Area {
  int64_t left, top, width, height;
};

// Tiles of a picture of height x width units.
std::vector<Area> areas_of(int64_t height, int64_t width, int64_t tile, int64_t overlap);

// A picture or latent, built from its tiles from the top down; it takes memory as tiles come.
class Mosaic {
 public:
  // ramp: units over which neighbours fade into each other
  Mosaic(int64_t width, int64_t height, int64_t channels, int64_t ramp);

  // tile: (area.height, area.width, channels)
  void add(std::span<const float> tile, const Area& area);
  // The values of a part.
  std::vector<float> finish(const Area& part) const;
  // The values of all, without a copy. Ends it.
  std::vector<float> take();
  // Frees the memory of rows above this one; they may not be used again.
  void drop_above(int64_t row);

 private:
  size_t pixel(int64_t row, int64_t column) const;

  int64_t width_, height_;
  size_t channels_;
  int64_t ramp_;
  int64_t first_ = 0;  // the uppermost row still held
  std::vector<float> sums_, weights_;
};

}  // namespace rbee::engine
