#pragma once
// Results of tensor cores as y = ... + bias.

#include "backends/gpu/portable.h"
#include "backends/shared/product_params.h"

namespace rbee {
namespace gpu {

// Two neighbours of a row; nothing beyond y's ends. `out` is even.
template <class Y>
RB_DEVICE void store_pair(const GemmParams& p, int row, int out, float first, float second) {
  if (row >= p.rows || out >= p.outs) return;
  const Y* bias = static_cast<const Y*>(p.bias);
  Y* y = static_cast<Y*>(p.y) + row * p.y_row + out;
  const bool both = out + 1 < p.outs;
  if (bias != nullptr) {
    first += load_value(bias[out]);
    if (both) second += load_value(bias[out + 1]);
  }
  struct alignas(2 * sizeof(Y)) Pair {
    Y values[2];
  };
  const Pair pair{{store_value<Y>(first), store_value<Y>(second)}};
  if (both && p.y_row % 2 == 0) {
    *reinterpret_cast<Pair*>(y) = pair;
    return;
  }
  y[0] = pair.values[0];
  if (both) y[1] = pair.values[1];
}

}  // namespace gpu
}  // namespace rbee
