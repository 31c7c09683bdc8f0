#pragma once
// The activations of gates, in the order of GateOp.

#include "backends/gpu/kernels/quick_math.h"
#include "backends/shared/scalar.h"

namespace rbee {
namespace gpu {

// kQuick: the result is rounded to 16 bits.
template <bool kQuick>
struct Silu {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    if constexpr (kQuick) {
      return quick_silu(x);
    } else {
      return silu(x);
    }
  }
};
template <bool kQuick>
struct Gelu {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    if constexpr (kQuick) {
      return quick_gelu_tanh(x);
    } else {
      return gelu(x);
    }
  }
};
template <bool kQuick>
struct GeluErf {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    if constexpr (kQuick) {
      return quick_gelu_erf(x);
    } else {
      return gelu_erf(x);
    }
  }
};
struct Relu {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    return relu(x);
  }
};
template <bool kQuick>
struct Sigmoid {
  template <class T>
  RB_DEVICE T operator()(T x) const {
    if constexpr (kQuick) {
      return quick_sigmoid(x);
    } else {
      return sigmoid(x);
    }
  }
};

// Calls use(activation) with the activation of `op`, a GateOp, for results of type T.
template <class T, class Use>
RB_DEVICE void with_gate(i32 op, const Use& use) {
  constexpr bool kQuick = sizeof(T) <= 2;
  switch (op) {
    case 0:
      return use(Silu<kQuick>{});
    case 1:
      return use(Gelu<kQuick>{});
    case 2:
      return use(GeluErf<kQuick>{});
    case 3:
      return use(Relu{});
    default:
      return use(Sigmoid<kQuick>{});
  }
}

}  // namespace gpu
}  // namespace rbee
