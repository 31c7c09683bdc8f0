#pragma once
// The order in which the blocks of a product take its tiles.

#include "backends/gpu/portable.h"

namespace rbee {
namespace gpu {

// Of a grid of tiles, in tiles.
struct TileNumber {
  u32 down, across;
};

// Columns of eight tiles one after another, so that blocks that run together share their rows of x
// and of the weight in the second cache.
RB_DEVICE TileNumber tile_number(u32 block, u32 down, u32 across) {
  constexpr u32 kGroup = 8;
  const u32 per_group = kGroup * across;
  const u32 first = block / per_group * kGroup;
  const u32 height = down - first < kGroup ? down - first : kGroup;
  const u32 inside = block % per_group;
  return TileNumber{first + inside % height, inside / height};
}

struct TilePlace {
  int row, out;  // of the tile's first result
};

template <int kRows, int kOuts>
RB_DEVICE TilePlace tile_place(u32 block, int rows, int outs) {
  const TileNumber tile = tile_number(block, static_cast<u32>((rows + kRows - 1) / kRows),
                                      static_cast<u32>((outs + kOuts - 1) / kOuts));
  return TilePlace{static_cast<int>(tile.down) * kRows, static_cast<int>(tile.across) * kOuts};
}

}  // namespace gpu
}  // namespace rbee
