#pragma once
// y = x * weight^T + bias of many choices by tile_product: the rows of a tile are choices of one
// expert, found in the groups that expert_groups() made.

#include "backends/gpu/kernels/expert_rows.h"
#include "backends/gpu/kernels/tile_product.h"

namespace rbee {
namespace gpu {

static_assert(kTile == kExpertRows, "tiles are counted by expert_groups()");

// The rows of x of an expert's choices.
template <class T>
struct LoadChosen {
  const T* x;
  const i32* choices;
  i64 depth;
  i32 each;
  RB_DEVICE float operator()(i64 line, i64 k) const {
    return load_value(x[choices[line] / each * depth + k]);
  }
};

template <class T>
struct StoreChosen {
  T* y;
  const T* bias;  // the expert's
  const i32* choices;
  i64 outs;
  RB_DEVICE void operator()(i64 row, i64 out, float sum) const {
    if (bias != nullptr) sum += load_value(bias[out]);
    y[choices[row] * outs + out] = store_value<T>(sum);
  }
};

// make_weight(data): a reader of the expert's weight at `data`.
template <class T, class MakeWeight>
RB_DEVICE void expert_tiles(const ExpertTilesParams& p, const MakeWeight& make_weight) {
  const i64 across = (p.outs + kTile - 1) / kTile;
  const i64 tiles = p.tiles[p.experts] * across;
  for (i64 tile = block_x(); tile < tiles; tile += blocks_x()) {
    const i64 down = tile / across;
    const i32 expert = expert_of(p.tiles, p.experts, down);
    const i32* choices = p.order + p.starts[expert];
    const i64 rows = p.starts[expert + 1] - p.starts[expert];
    const T* bias = static_cast<const T*>(p.bias);
    tile_product<float>(
        ProductShape{rows, p.outs, p.depth, true, true}, (down - p.tiles[expert]) * kTile,
        tile % across * kTile, LoadChosen<T>{static_cast<const T*>(p.x), choices, p.depth, p.each},
        make_weight(static_cast<const u8*>(p.weight) + expert * p.expert_bytes),
        StoreChosen<T>{static_cast<T*>(p.y), bias == nullptr ? bias : bias + expert * p.outs,
                       choices, p.outs});
  }
}

}  // namespace gpu
}  // namespace rbee
