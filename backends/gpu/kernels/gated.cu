// y = act(gate) * up. Limited by memory.
#include "backends/gpu/tile.h"
#include "backends/shared/elementwise_params.h"
#include "backends/shared/scalar.h"

namespace rbee {
namespace gpu {

struct Silu {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    return silu(x);
  }
};
struct Gelu {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    return gelu(x);
  }
};
struct GeluErf {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    return gelu_erf(x);
  }
};
// NaN gives 0, as in the reference.
struct Relu {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    return x > T(0) ? x : T(0);
  }
};
struct Sigmoid {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    return sigmoid(x);
  }
};

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

// The order of GateOp.
template <class T>
RB_DEVICE void gated(const BinaryParams& p) {
  switch (p.op) {
    case 0:
      return gate<T>(p, Silu{});
    case 1:
      return gate<T>(p, Gelu{});
    case 2:
      return gate<T>(p, GeluErf{});
    case 3:
      return gate<T>(p, Relu{});
    default:
      return gate<T>(p, Sigmoid{});
  }
}

#define RB_GATED(dtype, T) RB_KERNEL(gated_##dtype, kTileThreads, BinaryParams, (gated<T>(p)))
RB_EACH_FLOAT_TYPE(RB_GATED)

}  // namespace gpu
}  // namespace rbee
