#pragma once
// The host's side of kernels/tile_product.h.

#include <algorithm>
#include <cstdint>

namespace rbee::gpu {

inline constexpr uint32_t kProductThreads = 256;

inline int64_t product_tiles(int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 64;
  return (rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile);
}

// Blocks take tiles in turn where there are more than a grid may have.
inline uint32_t grid_for_tiles(int64_t tiles) {
  constexpr int64_t kMost = int64_t{1} << 23;
  return static_cast<uint32_t>(std::min(tiles, kMost));
}

}  // namespace rbee::gpu
