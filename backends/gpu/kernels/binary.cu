// y = a op b, for numbers and for comparisons. Limited by memory.
#include "backends/gpu/tile.h"
#include "backends/shared/elementwise_params.h"

namespace rbee {
namespace gpu {

// Integers wrap around: unsigned arithmetic keeps the low bits.
struct Add {
  template <class T>
  RB_DEVICE T operator()(T a, T b) const {
    if constexpr (IsFloat<T>::value) return a + b;
    return static_cast<T>(static_cast<u64>(a) + static_cast<u64>(b));
  }
};
struct Subtract {
  template <class T>
  RB_DEVICE T operator()(T a, T b) const {
    if constexpr (IsFloat<T>::value) return a - b;
    return static_cast<T>(static_cast<u64>(a) - static_cast<u64>(b));
  }
};
struct Multiply {
  template <class T>
  RB_DEVICE T operator()(T a, T b) const {
    if constexpr (IsFloat<T>::value) return a * b;
    return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b));
  }
};
// Integers: division by zero gives 0; the one quotient that overflows wraps around.
struct Divide {
  template <class T>
  RB_DEVICE T operator()(T a, T b) const {
    if constexpr (IsFloat<T>::value) return a / b;
    if (b == 0) return 0;
    if (static_cast<T>(-1) < T(0) && b == static_cast<T>(-1)) {
      return static_cast<T>(-static_cast<u64>(a));
    }
    return static_cast<T>(a / b);
  }
};
// NaN operands give NaN.
struct Smaller {
  template <class T>
  RB_DEVICE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct Larger {
  template <class T>
  RB_DEVICE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

struct Equal {
  template <class T>
  RB_DEVICE u8 operator()(T a, T b) const {
    return a == b;
  }
};
struct Unequal {
  template <class T>
  RB_DEVICE u8 operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  RB_DEVICE u8 operator()(T a, T b) const {
    return a < b;
  }
};
struct LessOrEqual {
  template <class T>
  RB_DEVICE u8 operator()(T a, T b) const {
    return a <= b;
  }
};

// y[k] = f(a[k], b[k]); f takes and returns values of the type computed in.
template <class Y, class T, int kCount, class F>
RB_DEVICE void each(TileOf<Y, kCount>& y, const TileOf<T, kCount>& a, const TileOf<T, kCount>& b,
                    F f) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    y.values[k] = store_value<Y>(f(load_value(a.values[k]), load_value(b.values[k])));
  }
}

// The order of BinaryOp.
struct Binary {
  u32 op;
  template <class Y, class X>
  RB_DEVICE void operator()(Y& y, const X& a, const X& b) const {
    switch (op) {
      case 0:
        return each(y, a, b, Add{});
      case 1:
        return each(y, a, b, Subtract{});
      case 2:
        return each(y, a, b, Multiply{});
      case 3:
        return each(y, a, b, Divide{});
      case 4:
        return each(y, a, b, Smaller{});
      default:
        return each(y, a, b, Larger{});
    }
  }
};

// The order of CompareOp; a > b is b < a.
struct Compare {
  u32 op;
  template <class Y, class X>
  RB_DEVICE void operator()(Y& y, const X& a, const X& b) const {
    switch (op) {
      case 0:
        return each(y, a, b, Equal{});
      case 1:
        return each(y, a, b, Unequal{});
      case 2:
        return each(y, a, b, Less{});
      case 3:
        return each(y, a, b, LessOrEqual{});
      case 4:
        return each(y, b, a, Less{});
      default:
        return each(y, b, a, LessOrEqual{});
    }
  }
};

template <class Y, class T, class F>
RB_DEVICE void run(const BinaryParams& p, F f) {
  map_space<Y, kPerThread<T>>(p.space, p.y, f, In<T>{p.a}, In<T>{p.b});
}

#define RB_BINARY(dtype, T)                                                           \
  RB_KERNEL(binary_##dtype, kTileThreads, BinaryParams, (run<T, T>(p, Binary{p.op}))) \
  RB_KERNEL(compare_##dtype, kTileThreads, BinaryParams, (run<u8, T>(p, Compare{p.op})))
RB_EACH_PLAIN(RB_BINARY)

}  // namespace gpu
}  // namespace rbee
