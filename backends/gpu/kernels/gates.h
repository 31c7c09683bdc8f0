#pragma once
// The activations of gates, in the order of GateOp.

#include "backends/gpu/portable.h"
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

// use(activation) with the one that `op`, a GateOp, names.
template <class Use>
RB_DEVICE void with_gate(i32 op, const Use& use) {
  switch (op) {
    case 0:
      return use(Silu{});
    case 1:
      return use(Gelu{});
    case 2:
      return use(GeluErf{});
    case 3:
      return use(Relu{});
    default:
      return use(Sigmoid{});
  }
}

}  // namespace gpu
}  // namespace rbee
