#pragma once
// Finds a block's rows and outputs in a product of many choices, from the groups of
// expert_groups(); for the vendors' kernels on matrix units.

#include "backends/gpu/portable.h"
#include "backends/shared/expert_params.h"
#include "backends/shared/product_params.h"

namespace rbee {
namespace gpu {

// The expert of row of tiles `tile`: the last with no more tiles before it.
RB_DEVICE i32 expert_of(const i32* tiles, i32 experts, i64 tile) {
  i32 low = 0, high = experts - 1;
  while (low < high) {
    const i32 middle = (low + high + 1) / 2;
    if (tiles[middle] <= tile) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// A tile: up to kExpertRows choices of one expert, from output `out` on.
struct ExpertPlace {
  i32 expert;
  i32 rows;
  const i32* choices;  // (rows)
  i32 out;

  RB_DEVICE i64 row_of_x(const ExpertGemmParams& p, int line) const {
    return choices[line] / p.each;
  }
};

// This block's tile of kOuts outputs; false if there is none: only the device knows their number.
template <int kOuts>
RB_DEVICE bool find_place(const ExpertGemmParams& p, ExpertPlace& place) {
  const i32 across = (p.outs + kOuts - 1) / kOuts;
  const i32 tile = p.tiles[p.first] + static_cast<i32>(block_x()) / across;
  if (tile >= p.tiles[p.first + p.count]) return false;
  place.expert = p.first + expert_of(p.tiles + p.first, p.count, tile);
  const i32 start = p.starts[place.expert] + (tile - p.tiles[place.expert]) * kExpertRows;
  const i32 left = p.starts[place.expert + 1] - start;
  place.rows = left < kExpertRows ? left : kExpertRows;
  place.choices = p.order + start;
  place.out = static_cast<i32>(block_x()) % across * kOuts;
  return true;
}

// The place's product as a product of all choices with the expert's weight and bias: its rows in
// y are place.choices.
RB_DEVICE GemmParams gemm_of(const ExpertGemmParams& p, const ExpertPlace& place,
                             i64 element_bytes) {
  const i64 outs = p.outs;
  const i64 y_bytes = p.y_type == 0 ? 4 : 2;
  const u8* weight = static_cast<const u8*>(p.weight);
  const u8* bias = static_cast<const u8*>(p.bias);
  return {p.x,
          weight + (place.expert - p.first) * outs * p.depth * element_bytes,
          bias == nullptr ? bias : bias + place.expert * outs * y_bytes,
          p.y,
          p.choices,
          p.outs,
          p.depth,
          p.y_type,
          outs,
          p.depth,
          p.depth,
          0,
          0,
          0};
}

}  // namespace gpu
}  // namespace rbee
