// y = act(gate) * up. Limited by memory.
#include "backends/gpu/kernels/gates.h"
#include "backends/gpu/tile.h"
#include "backends/shared/elementwise_params.h"

namespace rbee {
namespace gpu {

template <class T, class Act>
RB_DEVICE void gate(const BinaryParams& p, Act act) {
  map_space<T, kPerThread<T>>(
      p.space, p.y,
      [=](auto& y, const auto& gate, const auto& up) {
#pragma unroll
        for (int i = 0; i < static_cast<int>(sizeof(y) / sizeof(T)); ++i) {
          y.values[i] = store_value<T>(act(load_value(gate.values[i])) * load_value(up.values[i]));
        }
      },
      In<T>{p.a}, In<T>{p.b});
}

template <class T>
RB_DEVICE void gated(const BinaryParams& p) {
  with_gate<T>(p.op, [&](auto act) { gate<T>(p, act); });
}

#define RB_GATED(dtype, T) RB_KERNEL(gated_##dtype, kTileThreads, BinaryParams, (gated<T>(p)))
RB_EACH_FLOAT_TYPE(RB_GATED)

}  // namespace gpu
}  // namespace rbee
