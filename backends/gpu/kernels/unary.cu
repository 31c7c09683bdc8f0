// y = f(x) and y = mul * x + add. Memory limits all but the longest functions of 16-bit types.
#include "backends/gpu/tile.h"
#include "backends/shared/elementwise_params.h"
#include "backends/shared/scalar.h"

namespace rbee {
namespace gpu {

template <class T, int kCount, class F>
RB_DEVICE void each(TileOf<T, kCount>& y, const TileOf<T, kCount>& x, F f) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) y.values[k] = store_value<T>(f(load_value(x.values[k])));
}

RB_DEVICE float absolute(float x) {
  return magnitude(x);
}
RB_DEVICE double absolute(double x) {
  return f64::magnitude(x);
}

// The order of UnaryOp. C is the type computed in.
template <class C>
struct Unary {
  u32 op;
  C param;
  template <class Y>
  RB_DEVICE void operator()(Y& y, const Y& x) const {
    const C a = param;
    switch (op) {
#define RB_CASE(number, ...) \
  case number:               \
    return each(y, x, [=](C v) -> C { return __VA_ARGS__; });
      RB_CASE(0, absolute(v))
      RB_CASE(1, ceil(v))
      RB_CASE(2, cos(v))
      RB_CASE(3, elu(v, a))
      RB_CASE(4, erf(v))
      RB_CASE(5, exp(v))
      RB_CASE(6, floor(v))
      RB_CASE(7, gelu(v))
      RB_CASE(8, gelu_erf(v))
      RB_CASE(9, log(v))
      RB_CASE(10, -v)
      RB_CASE(11, normcdf(v))
      RB_CASE(12, pow(v, a))
      RB_CASE(13, quick_gelu(v))
      RB_CASE(14, C(1) / v)
      RB_CASE(15, relu(v))
      RB_CASE(16, round_away(v))
      RB_CASE(17, sigmoid(v))
      RB_CASE(18, sign(v))
      RB_CASE(19, silu(v))
      RB_CASE(20, sin(v))
      RB_CASE(21, v * v)
      RB_CASE(22, sqrt(v))
      RB_CASE(23, tanh(v))
#undef RB_CASE
      default:
        break;
    }
  }
};

template <class T>
RB_DEVICE bool below_zero(T x) {
  if constexpr (static_cast<T>(-1) < static_cast<T>(0)) {
    return x < 0;
  } else {
    return false;
  }
}

// Modulo 2^bits: unsigned arithmetic keeps the low bits.
template <class T>
struct UnaryInteger {
  u32 op;
  RB_DEVICE T of(T x) const {
    const u64 wide = static_cast<u64>(x);
    switch (op) {
      case 0:
        return static_cast<T>(below_zero(x) ? -wide : wide);
      case 10:
        return static_cast<T>(-wide);
      case 15:
        return below_zero(x) ? T(0) : x;
      case 18:
        return static_cast<T>(below_zero(x) ? -1 : x != 0);
      default:  // 21; the host passes no other
        return static_cast<T>(wide * wide);
    }
  }
  template <class Y>
  RB_DEVICE void operator()(Y& y, const Y& x) const {
    each(y, x, [this](T v) { return of(v); });
  }
};

struct Affine {
  double mul, add;
  template <class T, int kCount>
  RB_DEVICE void operator()(TileOf<T, kCount>& y, const TileOf<T, kCount>& x) const {
    if constexpr (IsFloat<Compute<T>>::value) {
      using C = Compute<T>;
      const C m = static_cast<C>(mul), a = static_cast<C>(add);
      each(y, x, [m, a](C v) { return v * m + a; });
    } else {
      // Truncation makes one rounding more or less visible: the reference rounds twice.
      each(y, x,
           [this](T v) { return saturate<T>(rounded_product(static_cast<double>(v), mul) + add); });
    }
  }
};

template <class T>
RB_DEVICE void unary(const UnaryParams& p) {
  using C = Compute<T>;
  map_space<T, kPerThread<T>>(p.space, p.y, Unary<C>{p.op, static_cast<C>(p.param)}, In<T>{p.x});
}
template <class T>
RB_DEVICE void unary_integer(const UnaryParams& p) {
  map_space<T, kPerThread<T>>(p.space, p.y, UnaryInteger<T>{p.op}, In<T>{p.x});
}
template <class T>
RB_DEVICE void affine(const AffineParams& p) {
  map_space<T, kPerThread<T>>(p.space, p.y, Affine{p.mul, p.add}, In<T>{p.x});
}

#define RB_UNARY(dtype, T) RB_KERNEL(unary_##dtype, kTileThreads, UnaryParams, (unary<T>(p)))
RB_EACH_FLOAT_TYPE(RB_UNARY)
#define RB_UNARY_INTEGER(dtype, T) \
  RB_KERNEL(unary_##dtype, kTileThreads, UnaryParams, (unary_integer<T>(p)))
RB_EACH_INTEGER(RB_UNARY_INTEGER)
#define RB_AFFINE(dtype, T) RB_KERNEL(affine_##dtype, kTileThreads, AffineParams, (affine<T>(p)))
RB_EACH_PLAIN(RB_AFFINE)

}  // namespace gpu
}  // namespace rbee
