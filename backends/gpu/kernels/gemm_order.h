#pragma once
// In which order the blocks of a product take its tiles.

#include "backends/gpu/portable.h"

namespace rbee {
namespace gpu {

struct TilePlace {
  int row, out;  // of the tile's first result
};

// Columns of eight tiles one after another, so that blocks that run together share their rows of x
// and of the weight in the second cache.
template <int kRows, int kOuts>
RB_DEVICE TilePlace tile_place(u32 block, int rows, int outs) {
  constexpr u32 kGroup = 8;
  const u32 down = static_cast<u32>((rows + kRows - 1) / kRows);
  const u32 across = static_cast<u32>((outs + kOuts - 1) / kOuts);
  const u32 per_group = kGroup * across;
  const u32 first = block / per_group * kGroup;
  const u32 height = down - first < kGroup ? down - first : kGroup;
  const u32 inside = block % per_group;
  return TilePlace{static_cast<int>(first + inside % height) * kRows,
                   static_cast<int>(inside / height) * kOuts};
}

}  // namespace gpu
}  // namespace rbee
