#pragma once
// Elementary functions of double for devices without a math library; hosts call their libm. Errors
// are below 4 ulp over the whole range; special values follow C's <math.h>. tests/units/shared
// measures them. Methods as in math.h: polynomials are interpolations at Chebyshev nodes, range
// reductions follow J.-M. Muller, "Elementary Functions" (2016), chapters 11 and 12. Decimal
// constants have seventeen digits, which name one double.

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

// a * b rounded, never fused with an addition: sums that also add the product's rounding error
// need the rounded product itself.
RB_FN float rounded_product(float a, float b) {
#if defined(__CUDA_ARCH__)
  float out;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
#else
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
  return a * b;
#endif
}

#if !defined(__METAL_VERSION__)
RB_FN double rounded_product(double a, double b) {
#if defined(__CUDA_ARCH__)
  double out;
  asm("mul.rn.f64 %0, %1, %2;" : "=d"(out) : "d"(a), "d"(b));
  return out;
#else
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
  return a * b;
#endif
}

namespace f64 {

RB_FN u64 bits_of(double x) {
  return __builtin_bit_cast(u64, x);
}
RB_FN double of_bits(u64 bits) {
  return __builtin_bit_cast(double, bits);
}
RB_FN double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
RB_FN double infinity() {
  return of_bits(0x7ff0000000000000ull);
}
RB_FN double not_a_number() {
  return of_bits(0x7ff8000000000000ull);
}
RB_FN double magnitude(double x) {
  return of_bits(bits_of(x) & 0x7fffffffffffffffull);
}
RB_FN bool is_negative(double x) {
  return bits_of(x) >> 63 != 0;
}
RB_FN double with_sign_of(double x, double sign) {
  return of_bits(bits_of(x) | (bits_of(sign) & 0x8000000000000000ull));
}

// The whole number nearest to x, |x| < 2^51: adding 1.5 * 2^52 pushes the fraction out.
RB_FN double nearest(double x) {
  const double shift = 6755399441055744.0;
  return (x + shift) - shift;
}

// 2^n, -1022 <= n <= 1023
RB_FN double power_of_two(int n) {
  return of_bits(static_cast<u64>(n + 1023) << 52);
}

// x * 2^n, |n| < 2000; in two steps, because 2^n alone may leave the range.
RB_FN double scale_by_power(double x, int n) {
  const int half = n / 2;
  return x * power_of_two(half) * power_of_two(n - half);
}

// x = n * ln 2 + r, |r| <= ln 2 / 2. The upper part of ln 2 has 33 bits: n times it is exact.
struct ReducedExp {
  double r;
  double n;
};
RB_FN ReducedExp reduce_exp(double x) {
  const double n = nearest(x * 1.4426950408889634);
  return ReducedExp{(x - n * 0.6931471804855391) - n * 7.440617110012397e-11, n};
}

// (e^r - 1 - r) / r^2
RB_FN double exp_tail(double r) {
  double p = 2.0914680780540263e-09;
  p = p * r + 2.5105208339987698e-08;
  p = p * r + 2.7557273657975953e-07;
  p = p * r + 2.7557255421023506e-06;
  p = p * r + 2.4801587325536023e-05;
  p = p * r + 0.00019841269874804214;
  p = p * r + 0.0013888888888883752;
  p = p * r + 0.00833333333332614;
  p = p * r + 0.04166666666666667;
  p = p * r + 0.1666666666666667;
  return p * r + 0.5;
}

RB_FN double exp(double x) {
  if (x > 709.8) return infinity();
  if (x < -745.2) return 0.0;
  if (x != x) return x;
  const ReducedExp parts = reduce_exp(x);
  const double y = 1.0 + (parts.r + parts.r * parts.r * exp_tail(parts.r));
  return scale_by_power(y, static_cast<int>(parts.n));
}

// e^x - 1, without cancellation near 0.
RB_FN double expm1(double x) {
  if (x > 709.8) return infinity();
  if (x < -37.5) return -1.0;
  if (x != x || x == 0.0) return x;
  const ReducedExp parts = reduce_exp(x);
  const double y = parts.r + parts.r * parts.r * exp_tail(parts.r);
  const int n = static_cast<int>(parts.n);
  if (n == 0) return y;
  if (n > 60) return scale_by_power(1.0 + y, n);
  const double power = power_of_two(n);
  return power * y + (power - 1.0);
}

// x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); x > 0 and finite
struct ReducedLog {
  double f;
  double e;
};
RB_FN ReducedLog reduce_log(double x) {
  const bool subnormal = x < 2.2250738585072014e-308;  // 2^-1022; times 2^52 it is normal
  const u64 bits = bits_of(subnormal ? x * 4503599627370496.0 : x);
  // Subtracting sqrt(1/2)'s bits makes the exponent field change there instead of at 1.
  const i64 e = static_cast<i64>(bits - 0x3fe6a09e667f3bcdull) >> 52;
  const double mantissa = of_bits(bits - (static_cast<u64>(e) << 52));
  return ReducedLog{mantissa - 1.0, static_cast<double>(subnormal ? e - 52 : e)};
}

// ((atanh(s) / s - 1) / s^2 - 1 / 3) / s^2 with z = s^2, |s| <= 0.1716
RB_FN double atanh_tail(double z) {
  double p = 0.06544945087461668;
  p = p * z + 0.066342303333191;
  p = p * z + 0.07693125692020165;
  p = p * z + 0.09090897712561712;
  p = p * z + 0.11111111196864193;
  p = p * z + 0.14285714285397358;
  return p * z + 0.20000000000000445;
}

RB_FN double log(double x) {
  if (x != x || x == infinity()) return x;
  if (x == 0.0) return -infinity();
  if (x < 0.0) return not_a_number();
  const ReducedLog parts = reduce_log(x);
  const double s = parts.f / (2.0 + parts.f);
  const double z = s * s;
  // log(1 + f) = 2 atanh(s), and 2s = f - s f, where f is exact.
  const double series = z * (0.3333333333333333 + z * atanh_tail(z));
  const double tail = s * (2.0 * series - parts.f) + parts.e * 7.440617110012397e-11;
  return parts.e * 0.6931471804855391 + (parts.f + tail);
}

RB_FN double tanh(double x) {
  const double a = magnitude(x);
  if (x != x) return x;
  if (a > 19.1) return with_sign_of(1.0, x);
  const double t = expm1(2.0 * a);
  return with_sign_of(t / (t + 2.0), x);
}

// erfc(x) * e^(x^2) for x in [0.45, 27.5]: a polynomial in t = (x - 4) / (x + 4), divided by
// 1 + 2x, which takes most of the decay away.
RB_FN double scaled_erfc(double x) {
  const double t = (x - 4.0) / (x + 4.0);
  double p = 1.586779780802795e-09;
  p = p * t + 2.4384276361448156e-09;
  p = p * t - 1.4911211780171622e-08;
  p = p * t - 1.9822940212452988e-08;
  p = p * t + 1.1084552480023224e-07;
  p = p * t + 7.725655874635735e-08;
  p = p * t - 8.257596271210118e-07;
  p = p * t + 2.917669775562896e-07;
  p = p * t + 5.709732682591749e-06;
  p = p * t - 1.1221046146395158e-05;
  p = p * t - 2.4399152497348348e-05;
  p = p * t + 0.00015062137396653955;
  p = p * t - 0.0001992567223604265;
  p = p * t - 0.0007577732294989915;
  p = p * t + 0.005031969983831622;
  p = p * t - 0.016197734065001818;
  p = p * t + 0.03716751553683048;
  p = p * t - 0.06633036581170265;
  p = p * t + 0.09373283499838667;
  p = p * t - 0.1010390660363234;
  p = p * t + 0.06809705425469177;
  p = p * t + 0.01537965210262002;
  p = p * t - 0.1396211168405625;
  p = p * t + 1.2329951186255526;
  return p / (1.0 + 2.0 * x);
}

// erfc for x in [0.45, 27.5]: x^2 in two parts, because e^(x^2) magnifies its rounding error.
RB_FN double erfc_upper(double x) {
  const double square = rounded_product(x, x);
  const double rest = fma(x, x, -square);
  const double y = scaled_erfc(x);
  return exp(-square) * (y - y * rest);
}

// erf(x) / x - 1 for z = x^2 <= 0.81
RB_FN double erf_tail(double z) {
  double p = 6.49502561029954e-11;
  p = p * z - 1.1652473945293408e-09;
  p = p * z + 1.4723494823392409e-08;
  p = p * z - 1.6358667560670684e-07;
  p = p * z + 1.6461696158782457e-06;
  p = p * z - 1.4925633568608262e-05;
  p = p * z + 0.00012055332519432235;
  p = p * z - 0.000854832701490715;
  p = p * z + 0.005223977625340751;
  p = p * z - 0.026866170645124077;
  p = p * z + 0.112837916709551;
  p = p * z - 0.37612638903183754;
  return p * z + 0.1283791670955126;
}

RB_FN double erf(double x) {
  const double a = magnitude(x);
  if (x != x) return x;
  if (a < 0.9) return x + x * erf_tail(x * x);
  if (a > 6.0) return with_sign_of(1.0, x);
  return with_sign_of(1.0 - erfc_upper(a), x);
}

RB_FN double erfc(double x) {
  if (x != x) return x;
  if (x < 0.5) return 1.0 - erf(x);
  return x > 27.3 ? 0.0 : erfc_upper(x);
}

// x = n * pi / 2 + r, |r| <= pi / 4; n modulo 4
struct ReducedAngle {
  double r;
  int n;
};

// Word `index` (64 bits) of 2 / pi, most significant first.
RB_FN u64 two_over_pi_word(int index) {
  switch (index) {
    case 0:
      return 0xa2f9836e4e441529ull;
    case 1:
      return 0xfc2757d1f534ddc0ull;
    case 2:
      return 0xdb6295993c439041ull;
    case 3:
      return 0xfe5163abdebbc561ull;
    case 4:
      return 0xb7246e3a424dd2e0ull;
    case 5:
      return 0x06492eea09d1921cull;
    case 6:
      return 0xfe1deb1cb129a73eull;
    case 7:
      return 0xe88235f52ebb4484ull;
    case 8:
      return 0xe99c7026b45f7e41ull;
    case 9:
      return 0x3991d639835339f4ull;
    case 10:
      return 0x9c845f8bbdf9283bull;
    case 11:
      return 0x1ff897ffde05980full;
    case 12:
      return 0xef2f118b5a0a6d1full;
    case 13:
      return 0x6d367ecf27cb09b7ull;
    case 14:
      return 0x4f463f669e5fea2dull;
    case 15:
      return 0x7527bac7ebe5f17bull;
    case 16:
      return 0x3d0739f78a5292eaull;
    case 17:
      return 0x6bfb5fb11f8d5d08ull;
    default:
      return 0x56033046fc7b6babull;
  }
}

// 64 bits of 2 / pi from `bit` places after the point on; bit >= -63.
RB_FN u64 two_over_pi_bits(int bit) {
  if (bit < 0) return two_over_pi_word(0) >> -bit;
  const int word = bit >> 6;
  const int shift = bit & 63;
  if (shift == 0) return two_over_pi_word(word);
  return (two_over_pi_word(word) << shift) | (two_over_pi_word(word + 1) >> (64 - shift));
}

// The upper 64 bits of a * b.
RB_FN u64 high_product(u64 a, u64 b) {
  const u64 a_low = a & 0xffffffffu, a_high = a >> 32, b_low = b & 0xffffffffu, b_high = b >> 32;
  const u64 middle = a_high * b_low + ((a_low * b_low) >> 32);
  const u64 other = a_low * b_high + (middle & 0xffffffffu);
  return a_high * b_high + (middle >> 32) + (other >> 32);
}

// Payne and Hanek (1983): a = m * 2^e with a 53-bit m; only those bits of 2 / pi are used that
// decide a * 2 / pi modulo 4 and 126 bits of its fraction, of which a double can cancel 62.
// a >= 2^20, finite.
RB_FN ReducedAngle reduce_large_angle(double a) {
  const u64 bits = bits_of(a);
  const int e = static_cast<int>(bits >> 52) - 1075;
  const u64 m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  // Bits of weight 2^2 and more times m * 2^e are multiples of 4: begin after them.
  const int first = e - 2;
  const u64 middle = two_over_pi_bits(first + 64);
  u64 low = m * middle;
  u64 high = m * two_over_pi_bits(first) + high_product(m, middle);
  const u64 carried = high_product(m, two_over_pi_bits(first + 128));
  low += carried;
  high += low < carried ? 1 : 0;
  // high:low is a * 2 / pi modulo 4 in units of 2^-126.
  int n = static_cast<int>(high >> 62);
  high = (high << 2) | (low >> 62);
  low <<= 2;
  const bool above_half = (high >> 63) != 0;
  if (above_half) {
    low = ~low + 1;
    high = ~high + (low == 0 ? 1 : 0);
    n += 1;
  }
  // In two parts, the first exact.
  const double upper = static_cast<double>(high & ~0x7ffull) * 5.421010862427522e-20;  // 2^-64
  const double lower =
      (static_cast<double>(high & 0x7ffu) + static_cast<double>(low) * 5.421010862427522e-20) *
      5.421010862427522e-20;
  const double r =
      fma(upper, 1.5707963267948966, fma(upper, 6.123233995736766e-17, lower * 1.5707963267948966));
  return ReducedAngle{above_half ? -r : r, n & 3};
}

// Cody and Waite: pi / 2 in three parts of falling size, exact products by fma.
RB_FN ReducedAngle reduce_small_angle(double a) {
  const double n = nearest(a * 0.6366197723675814);
  double r = fma(-n, 1.5707963267948966, a);
  r = fma(-n, 6.123233995736766e-17, r);
  r = fma(n, 1.4973849048591698e-33, r);
  return ReducedAngle{r, static_cast<int>(n) & 3};
}

RB_FN ReducedAngle reduce_angle(double a) {
  return a < 1048576.0 ? reduce_small_angle(a) : reduce_large_angle(a);
}

// sin(r), |r| <= pi / 4
RB_FN double sin_kernel(double r) {
  const double z = r * r;
  double p = -7.586636882815386e-13;
  p = p * z + 1.605853059664576e-10;
  p = p * z - 2.5052106225994398e-08;
  p = p * z + 2.755731921932058e-06;
  p = p * z - 0.0001984126984126504;
  p = p * z + 0.008333333333333331;
  p = p * z - 0.16666666666666666;
  return r + r * z * p;
}

// cos(r), |r| <= pi / 4
RB_FN double cos_kernel(double r) {
  const double z = r * r;
  double p = 4.74583841252559e-14;
  p = p * z - 1.1470460319209403e-11;
  p = p * z + 2.0876755787492604e-09;
  p = p * z - 2.755731922139249e-07;
  p = p * z + 2.4801587301584632e-05;
  p = p * z - 0.0013888888888888887;
  p = p * z + 0.041666666666666664;
  return (1.0 - 0.5 * z) + z * z * p;
}

RB_FN double sin(double x) {
  const double a = magnitude(x);
  if (!(a < infinity())) return not_a_number();
  const ReducedAngle angle = reduce_angle(a);
  const double y = (angle.n & 1) != 0 ? cos_kernel(angle.r) : sin_kernel(angle.r);
  return ((angle.n & 2) != 0) != is_negative(x) ? -y : y;
}

RB_FN double cos(double x) {
  const double a = magnitude(x);
  if (!(a < infinity())) return not_a_number();
  const ReducedAngle angle = reduce_angle(a);
  const double y = (angle.n & 1) != 0 ? sin_kernel(angle.r) : cos_kernel(angle.r);
  return angle.n == 1 || angle.n == 2 ? -y : y;
}

// A number as the sum of two doubles, |lo| <= ulp(hi) / 2 or so.
struct Pair {
  double hi;
  double lo;
};

RB_FN Pair product(Pair a, Pair b) {
  const double hi = rounded_product(a.hi, b.hi);
  return Pair{hi, fma(a.hi, b.hi, -hi) + (a.hi * b.lo + a.lo * b.hi)};
}
// |a| >= |b.hi|, or a is 0
RB_FN Pair sum(double a, Pair b) {
  const double hi = a + b.hi;
  return Pair{hi, a == 0.0 ? b.lo : (b.hi - (hi - a)) + b.lo};
}

// log2(x), x > 0 finite, with about 65 correct bits.
RB_FN Pair log2_pair(double x) {
  const ReducedLog parts = reduce_log(x);
  const double den = parts.f + 2.0;
  const double den_rest = parts.f - (den - 2.0);
  const double hi = parts.f / den;
  const Pair s = Pair{hi, (fma(-hi, den, parts.f) - hi * den_rest) / den};
  const Pair z = product(s, s);
  // log2(1 + f) = (2 / ln 2) * s * (1 + z / 3 + z^2 * tail)
  const Pair third = product(z, Pair{0.3333333333333333, 1.850371707708594e-17});
  const Pair series = sum(1.0, Pair{third.hi, third.lo + z.hi * z.hi * atanh_tail(z.hi)});
  const Pair scaled = product(s, Pair{2.8853900817779268, 4.0710547481862066e-17});
  return sum(parts.e, product(scaled, series));
}

// 2^(y.hi + y.lo)
RB_FN double exp2_pair(Pair y) {
  if (y.hi > 1025.0) return infinity();
  if (y.hi < -1076.0) return 0.0;
  const double n = nearest(y.hi);
  const double r = (y.hi - n) + y.lo;
  double p = 1.3716992997199021e-12;
  p = p * r + 2.5733634553720087e-11;
  p = p * r + 4.4455302899660493e-10;
  p = p * r + 7.054894344920915e-09;
  p = p * r + 1.0178086021228562e-07;
  p = p * r + 1.3215486816093242e-06;
  p = p * r + 1.5252733804051088e-05;
  p = p * r + 0.00015403530393362665;
  p = p * r + 0.0013333558146428445;
  p = p * r + 0.009618129107628484;
  p = p * r + 0.05550410866482158;
  p = p * r + 0.24022650695910072;
  p = p * r + 0.6931471805599453;
  return scale_by_power(1.0 + p * r, static_cast<int>(n));
}

// 0: y is no whole number, 1: odd, 2: even
RB_FN int parity(double y) {
  const double a = magnitude(y);
  if (a >= 9007199254740992.0) return 2;
  if (a != __builtin_floor(a)) return 0;
  return (static_cast<i64>(a) & 1) != 0 ? 1 : 2;
}

RB_FN double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return not_a_number();
  const double a = magnitude(x);
  const int kind = parity(y);
  const bool negative = is_negative(x);
  if (a == 0.0 || a == infinity()) {
    const double y_of_magnitude = (a == 0.0) == (y > 0.0) ? 0.0 : infinity();
    return negative && kind == 1 ? -y_of_magnitude : y_of_magnitude;
  }
  if (magnitude(y) == infinity()) {
    if (a == 1.0) return 1.0;
    return (a > 1.0) == (y > 0.0) ? infinity() : 0.0;
  }
  if (negative && kind == 0) return not_a_number();
  const Pair log2_a = log2_pair(a);
  const double exponent = rounded_product(y, log2_a.hi);
  double result;
  if (magnitude(exponent) > 2000.0) {
    result = exponent > 0.0 ? infinity() : 0.0;
  } else {
    result = exp2_pair(Pair{exponent, fma(y, log2_a.hi, -exponent) + y * log2_a.lo});
  }
  return negative && kind == 1 ? -result : result;
}

}  // namespace f64
#endif

}  // namespace shared
}  // namespace rbee
