#pragma once
// y = x * weight^T + bias by tile_product, for any way to read the weight.

#include "backends/gpu/kernels/tile_product.h"
#include "backends/shared/product_params.h"

namespace rbee {
namespace gpu {

// Row-major elements of a plain type; double weights are rounded to float.
template <class T>
struct LoadRow {
  const T* data;
  i64 depth;
  RB_DEVICE float operator()(i64 line, i64 k) const {
    return static_cast<float>(load_value(data[line * depth + k]));
  }
};

template <class T>
struct StoreWithBias {
  T* y;
  const T* bias;
  i64 y_row;
  RB_DEVICE void operator()(i64 row, i64 out, float sum) const {
    if (bias != nullptr) sum += load_value(bias[out]);
    y[row * y_row + out] = store_value<T>(sum);
  }
};

template <class T, class Weight>
RB_DEVICE void linear_tiles(const LinearParams& p, const Weight& weight) {
  const i64 across = (p.outs + kTile - 1) / kTile;
  const i64 tiles = (p.rows + kTile - 1) / kTile * across;
  const ProductShape shape{p.rows, p.outs, p.depth, true, true};
  const LoadRow<T> x{static_cast<const T*>(p.x), p.depth};
  const StoreWithBias<T> store{static_cast<T*>(p.y), static_cast<const T*>(p.bias), p.y_row};
  for (i64 tile = block_x(); tile < tiles; tile += blocks_x()) {
    tile_product<float>(shape, tile / across * kTile, tile % across * kTile, x, weight, store);
  }
}

}  // namespace gpu
}  // namespace rbee
