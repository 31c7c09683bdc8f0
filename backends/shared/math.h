#pragma once
// Elementary functions of float, equal on every device: most GPU compilers have none of them.
// Errors are below 4 ulp over the whole range, subnormal results included (where the device keeps
// them); special values follow C's <math.h>. tests/units/shared measures them. Decimal constants
// have nine digits, which name one float exactly (C++14 has no hexadecimal ones). Polynomials are
// interpolations at Chebyshev nodes; range reductions follow J.-M. Muller, "Elementary Functions"
// (2016), chapters 11 and 12.
//
// Overloads for double call the host's libm, or math_f64.h on devices.

#include "backends/shared/math_f64.h"
#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

#if defined(__METAL_VERSION__)
RB_FN float sqrt(float x) {
  return metal::precise::sqrt(x);
}
RB_FN float floor(float x) {
  return metal::floor(x);
}
RB_FN float ceil(float x) {
  return metal::ceil(x);
}
RB_FN float fma(float a, float b, float c) {
  return metal::fma(a, b, c);
}
#else
RB_FN float sqrt(float x) {
  return __builtin_sqrtf(x);
}
RB_FN float floor(float x) {
  return __builtin_floorf(x);
}
RB_FN float ceil(float x) {
  return __builtin_ceilf(x);
}
RB_FN float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
RB_FN double sqrt(double x) {
  return __builtin_sqrt(x);
}
RB_FN double floor(double x) {
  return __builtin_floor(x);
}
RB_FN double ceil(double x) {
  return __builtin_ceil(x);
}

#if defined(__CUDA_ARCH__) || defined(__AMDGCN__)
#define RB_F64(name) f64::name
#else
#define RB_F64(name) __builtin_##name
#endif
RB_FN double exp(double x) {
  return RB_F64(exp)(x);
}
RB_FN double expm1(double x) {
  return RB_F64(expm1)(x);
}
RB_FN double log(double x) {
  return RB_F64(log)(x);
}
RB_FN double tanh(double x) {
  return RB_F64(tanh)(x);
}
RB_FN double erf(double x) {
  return RB_F64(erf)(x);
}
RB_FN double erfc(double x) {
  return RB_F64(erfc)(x);
}
RB_FN double sin(double x) {
  return RB_F64(sin)(x);
}
RB_FN double cos(double x) {
  return RB_F64(cos)(x);
}
RB_FN double pow(double x, double y) {
  return RB_F64(pow)(x, y);
}
#undef RB_F64
#endif

RB_FN bool is_nan(float x) {
  return (bits_of_float(x) & 0x7fffffffu) > 0x7f800000u;
}
RB_FN float infinity() {
  return float_of_bits(0x7f800000u);
}
RB_FN float not_a_number() {
  return float_of_bits(0x7fc00000u);
}
RB_FN float magnitude(float x) {
  return float_of_bits(bits_of_float(x) & 0x7fffffffu);
}
RB_FN float with_sign_of(float x, float sign) {
  return float_of_bits(bits_of_float(x) | (bits_of_float(sign) & 0x80000000u));
}

// The whole number nearest to x, |x| < 2^22: adding 1.5 * 2^23 pushes the fraction out.
RB_FN float nearest(float x) {
  const float shift = 12582912.0f;
  return (x + shift) - shift;
}

// x * 2^n, -300 < n < 300; in two steps, because 2^n alone may leave the range.
RB_FN float scale_by_power(float x, int n) {
  const int half = n / 2;
  const int rest = n - half;
  return x * float_of_bits(static_cast<u32>(half + 127) << 23) *
         float_of_bits(static_cast<u32>(rest + 127) << 23);
}

// x = n * ln 2 + r, |r| <= ln 2 / 2. The upper part of ln 2 has 16 bits: n times it is exact.
struct ReducedExp {
  float r;
  float n;
};
RB_FN ReducedExp reduce_exp(float x) {
  const float n = nearest(x * 1.44269502f);
  return ReducedExp{(x - n * 0.693145752f) - n * 1.42860677e-06f, n};
}

// (e^r - 1 - r) / r^2
RB_FN float exp_tail(float r) {
  float p = 0.000198910799f;
  p = p * r + 0.00139337312f;
  p = p * r + 0.00833331048f;
  p = p * r + 0.041666463f;
  p = p * r + 0.166666672f;
  return p * r + 0.5f;
}

RB_FN float exp(float x) {
  if (x > 88.8f) return infinity();
  if (x < -104.0f) return 0.0f;
  if (is_nan(x)) return x;
  const ReducedExp parts = reduce_exp(x);
  const float y = 1.0f + (parts.r + parts.r * parts.r * exp_tail(parts.r));
  return scale_by_power(y, static_cast<int>(parts.n));
}

// e^x - 1, without cancellation near 0.
RB_FN float expm1(float x) {
  if (x > 88.8f) return infinity();
  if (x < -17.5f) return -1.0f;
  if (is_nan(x) || x == 0.0f) return x;
  const ReducedExp parts = reduce_exp(x);
  const float y = parts.r + parts.r * parts.r * exp_tail(parts.r);
  const int n = static_cast<int>(parts.n);
  if (n == 0) return y;
  if (n > 30) return scale_by_power(1.0f + y, n);
  const float power = float_of_bits(static_cast<u32>(n + 127) << 23);
  return power * y + (power - 1.0f);
}

// x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); x > 0 and finite
struct ReducedLog {
  float f;
  float e;
};
RB_FN ReducedLog reduce_log(float x) {
  const bool subnormal = x < 1.17549435e-38f;  // 2^-126; times 2^23 it is normal
  const u32 bits = bits_of_float(subnormal ? x * 8388608.0f : x);
  // Subtracting sqrt(1/2)'s bits makes the exponent field change there instead of at 1.
  const i32 e = static_cast<i32>(bits - 0x3f3504f3u) >> 23;
  const float mantissa = float_of_bits(bits - (static_cast<u32>(e) << 23));
  return ReducedLog{mantissa - 1.0f, static_cast<float>(subnormal ? e - 23 : e)};
}

// (atanh(s) / s - 1) / s^2 with z = s^2, |s| <= 0.1716; log(1 + f) = 2 atanh(f / (2 + f))
RB_FN float atanh_tail(float z) {
  float p = 0.116654843f;
  p = p * z + 0.142754018f;
  p = p * z + 0.200000614f;
  return p * z + 0.333333343f;
}

RB_FN float log(float x) {
  if (is_nan(x) || x == infinity()) return x;
  if (x == 0.0f) return -infinity();
  if (x < 0.0f) return not_a_number();
  const ReducedLog parts = reduce_log(x);
  const float s = parts.f / (2.0f + parts.f);
  const float z = s * s;
  // 2s = f - s f, and f is exact.
  const float tail = s * (2.0f * z * atanh_tail(z) - parts.f) + parts.e * 1.42860677e-06f;
  return parts.e * 0.693145752f + (parts.f + tail);
}

RB_FN float tanh(float x) {
  const float a = magnitude(x);
  if (is_nan(x)) return x;
  if (a > 9.1f) return with_sign_of(1.0f, x);
  const float t = expm1(2.0f * a);
  return with_sign_of(t / (t + 2.0f), x);
}

// erfc(x) * e^(x^2) for x in [0.45, 10.1]: a polynomial in t = (x - 2) / (x + 2), divided by
// 1 + 2x, which takes most of the decay away.
RB_FN float scaled_erfc(float x) {
  const float t = (x - 2.0f) / (x + 2.0f);
  float p = 0.000216500615f;
  p = p * t - 0.000310246483f;
  p = p * t - 0.00147112692f;
  p = p * t + 0.00121508224f;
  p = p * t + 0.00872811582f;
  p = p * t - 0.00802405644f;
  p = p * t - 0.0542207919f;
  p = p * t + 0.164050549f;
  p = p * t - 0.166030362f;
  p = p * t - 0.0927638113f;
  p = p * t + 1.27697837f;
  return p / (1.0f + 2.0f * x);
}

// erfc for x in [0.45, 10.1]: x^2 in two parts, because e^(x^2) magnifies its rounding error.
RB_FN float erfc_upper(float x) {
  const float square = rounded_product(x, x);
  const float rest = fma(x, x, -square);
  const float y = scaled_erfc(x);
  return exp(-square) * (y - y * rest);
}

// erf(x) / x - 1 for z = x^2 <= 1
RB_FN float erf_tail(float z) {
  float p = 1.0589381e-06f;
  p = p * z - 1.39093399e-05f;
  p = p * z + 0.000119565622f;
  p = p * z - 0.000854263781f;
  p = p * z + 0.00522378366f;
  p = p * z - 0.0268661324f;
  p = p * z + 0.112837911f;
  p = p * z - 0.376126379f;
  return p * z + 0.128379166f;
}

RB_FN float erf(float x) {
  const float a = magnitude(x);
  if (is_nan(x)) return x;
  if (a < 0.9f) return x + x * erf_tail(x * x);
  if (a > 4.0f) return with_sign_of(1.0f, x);
  return with_sign_of(1.0f - erfc_upper(a), x);
}

RB_FN float erfc(float x) {
  if (is_nan(x)) return x;
  if (x < 0.5f) return 1.0f - erf(x);
  return x > 10.1f ? 0.0f : erfc_upper(x);
}

// x = n * pi / 2 + r, |r| <= pi / 4; n modulo 4
struct ReducedAngle {
  float r;
  int n;
};

// Word `index` (32 bits) of 2 / pi = 0.a2f9836e..., most significant first.
RB_FN u32 two_over_pi_word(int index) {
  switch (index) {
    case 0:
      return 0xa2f9836eu;
    case 1:
      return 0x4e441529u;
    case 2:
      return 0xfc2757d1u;
    case 3:
      return 0xf534ddc0u;
    case 4:
      return 0xdb629599u;
    case 5:
      return 0x3c439041u;
    default:
      return 0xfe5163abu;
  }
}

// 32 bits of 2 / pi from `bit` places after the point on; bit >= -31.
RB_FN u32 two_over_pi_bits(int bit) {
  if (bit < 0) return two_over_pi_word(0) >> -bit;
  const int word = bit >> 5;
  const int shift = bit & 31;
  const u64 pair = (static_cast<u64>(two_over_pi_word(word)) << 32) | two_over_pi_word(word + 1);
  return static_cast<u32>(pair >> (32 - shift));
}

// Payne and Hanek (1983): x = m * 2^e with a 24-bit m; only those bits of 2 / pi are used that
// decide x * 2 / pi modulo 4 and its fraction. a >= 2, finite.
RB_FN ReducedAngle reduce_large_angle(float a) {
  const u32 bits = bits_of_float(a);
  const int e = static_cast<int>(bits >> 23) - 150;
  const u64 m = (bits & 0x7fffffu) | 0x800000u;
  // Bits of weight 2^2 and more times m * 2^e are multiples of 4: begin after them.
  const int first = e - 2;
  const u64 high = m * two_over_pi_bits(first);
  const u64 middle = m * two_over_pi_bits(first + 32);
  const u64 low = m * two_over_pi_bits(first + 64);
  // x * 2 / pi modulo 4, in units of 2^-62 (the sum wraps at 2^64 = 4).
  u64 angle = (high << 32) + middle + (low >> 32);
  int n = static_cast<int>(angle >> 62);
  angle <<= 2;
  const bool above_half = (angle >> 63) != 0;
  if (above_half) {
    angle = ~angle + 1;
    n += 1;
  }
  const float fraction = static_cast<float>(angle) * 5.42101086e-20f;  // 2^-64
  // The lower part of pi / 2 saves half a unit.
  const float r = fma(fraction, 1.57079637f, fraction * -4.37113883e-08f);
  return ReducedAngle{above_half ? -r : r, n & 3};
}

// Cody and Waite: pi / 2 in three parts of falling size, exact products by fma.
RB_FN ReducedAngle reduce_small_angle(float a) {
  const float n = nearest(a * 0.636619747f);
  float r = fma(-n, 1.57079637f, a);
  r = fma(n, 4.37113883e-08f, r);
  r = fma(n, 1.71512451e-15f, r);
  return ReducedAngle{r, static_cast<int>(n) & 3};
}

// sin(r), |r| <= pi / 4
RB_FN float sin_kernel(float r) {
  const float z = r * r;
  float p = 2.72493139e-06f;
  p = p * z - 0.000198400827f;
  p = p * z + 0.00833333191f;
  p = p * z - 0.166666672f;
  return r + r * z * p;
}

// cos(r), |r| <= pi / 4
RB_FN float cos_kernel(float r) {
  const float z = r * r;
  float p = -2.73004076e-07f;
  p = p * z + 2.48005963e-05f;
  p = p * z - 0.00138888881f;
  p = p * z + 0.0416666679f;
  return (1.0f - 0.5f * z) + z * z * p;
}

RB_FN ReducedAngle reduce_angle(float a) {
  return a < 2048.0f ? reduce_small_angle(a) : reduce_large_angle(a);
}

RB_FN float sin(float x) {
  const float a = magnitude(x);
  if (!(a < infinity())) return not_a_number();
  const ReducedAngle angle = reduce_angle(a);
  const float y = (angle.n & 1) != 0 ? cos_kernel(angle.r) : sin_kernel(angle.r);
  const bool negative = ((angle.n & 2) != 0) != (bits_of_float(x) >> 31 != 0);
  return negative ? -y : y;
}

RB_FN float cos(float x) {
  const float a = magnitude(x);
  if (!(a < infinity())) return not_a_number();
  const ReducedAngle angle = reduce_angle(a);
  const float y = (angle.n & 1) != 0 ? sin_kernel(angle.r) : cos_kernel(angle.r);
  return angle.n == 1 || angle.n == 2 ? -y : y;
}

// A number as the sum of two floats, |lo| <= ulp(hi) / 2 or so.
struct FloatPair {
  float hi;
  float lo;
};

// log2(x), x > 0 finite, with about 32 correct bits.
RB_FN FloatPair log2_pair(float x) {
  const ReducedLog parts = reduce_log(x);
  const float den = parts.f + 2.0f;
  const float den_rest = parts.f - (den - 2.0f);
  const float s = parts.f / den;
  const float s_rest = (fma(-s, den, parts.f) - s * den_rest) / den;
  const float z = s * s;
  // log2(1 + f) = (2 / ln 2) * s * (1 + z * tail)
  const float factor = 2.88539004f;
  const float factor_rest = 3.85192607e-08f;
  const float p = rounded_product(s, factor);
  const float p_rest = fma(s, factor, -p) + s * factor_rest + s_rest * factor;
  const float tail = p_rest + p * (z * atanh_tail(z));
  const float sum = parts.e + p;
  const float lost = parts.e == 0.0f ? 0.0f : p - (sum - parts.e);
  const float rest = lost + tail;
  const float hi = sum + rest;
  return FloatPair{hi, rest - (hi - sum)};
}

// 2^(y.hi + y.lo)
RB_FN float exp2_pair(FloatPair y) {
  if (y.hi > 129.0f) return infinity();
  if (y.hi < -151.0f) return 0.0f;
  const float n = nearest(y.hi);
  const float r = (y.hi - n) + y.lo;
  float p = 1.52975026e-05f;
  p = p * r + 0.000154616777f;
  p = p * r + 0.0013333502f;
  p = p * r + 0.00961805601f;
  p = p * r + 0.0555041097f;
  p = p * r + 0.240226507f;
  p = p * r + 0.693147182f;
  return scale_by_power(1.0f + p * r, static_cast<int>(n));
}

// 0: y is no whole number, 1: odd, 2: even
RB_FN int parity(float y) {
  const float a = magnitude(y);
  if (a >= 16777216.0f) return 2;
  if (a != floor(a)) return 0;
  return (static_cast<i32>(a) & 1) != 0 ? 1 : 2;
}

RB_FN float pow(float x, float y) {
  if (y == 0.0f || x == 1.0f) return 1.0f;
  if (is_nan(x) || is_nan(y)) return not_a_number();
  const float a = magnitude(x);
  const int kind = parity(y);
  const bool negative = bits_of_float(x) >> 31 != 0;
  if (a == 0.0f || a == infinity()) {
    const float y_of_magnitude = (a == 0.0f) == (y > 0.0f) ? 0.0f : infinity();
    return negative && kind == 1 ? -y_of_magnitude : y_of_magnitude;
  }
  if (magnitude(y) == infinity()) {
    if (a == 1.0f) return 1.0f;
    return (a > 1.0f) == (y > 0.0f) ? infinity() : 0.0f;
  }
  if (negative && kind == 0) return not_a_number();
  const FloatPair log2_a = log2_pair(a);
  const float product = rounded_product(y, log2_a.hi);
  float result;
  if (magnitude(product) > 200.0f) {
    result = product > 0.0f ? infinity() : 0.0f;
  } else {
    result = exp2_pair(FloatPair{product, fma(y, log2_a.hi, -product) + y * log2_a.lo});
  }
  return negative && kind == 1 ? -result : result;
}

}  // namespace shared
}  // namespace rbee
