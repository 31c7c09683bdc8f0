#pragma once
// Functions of a Vec. Included by the vec headers.

namespace rbee::cpu {
namespace {

// e^x = 2^n * e^r with |r| <= ln(2) / 2 and the first eight terms of the series, whose remainder is
// below 6e-9. Within 2 ulp; overflows to infinity, underflows through the subnormals, keeps NaN.
RB_INLINE Vec exp(Vec x) {
  x = max(splat(-104.0f), min(splat(89.0f), x));
  const Vec n = round_even(x * splat(1.44269504f));
  // ln(2) in two parts, so that n * the first is exact
  Vec r = fma(n, splat(-0.693145752f), x);
  r = fma(n, splat(-1.42860677e-6f), r);
  Vec p = splat(1.0f / 5040);
  p = fma(p, r, splat(1.0f / 720));
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  // 2^n in two factors reaches all exponents.
  const Vec half = round_even(n * splat(0.5f));
  return p * power_of_two(half) * power_of_two(n - half);
}

// e^x of x <= 0, for the weights of attention: seven terms, good to 2e-7; 0 below -87 and for
// minus infinity, keeps NaN.
RB_INLINE Vec exp_of_negative(Vec x) {
  const Vec bounded = max(splat(-87.0f), x);
  const Vec n = round_even(bounded * splat(1.44269504f));
  Vec r = fma(n, splat(-0.693145752f), bounded);
  r = fma(n, splat(-1.42860677e-6f), r);
  Vec p = splat(1.0f / 720);
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  return zero_below(p * power_of_two(n), x, -87.0f);
}

RB_INLINE Vec sigmoid(Vec x) {
  return splat(1.0f) / (splat(1.0f) + exp(-x));
}

// x / 2 * (1 + tanh(u)) with u = sqrt(2 / pi) * (x + 0.044715 x^3); 1 + tanh(u) = 2 * sigmoid(2 u).
RB_INLINE Vec gelu(Vec x) {
  constexpr float kTwiceRoot = 1.59576912f;  // 2 * sqrt(2 / pi)
  const Vec cubic = fma(x * x * x, splat(0.044715f), x);
  return x / (splat(1.0f) + exp(cubic * splat(-kTwiceRoot)));
}

// erf(x) / x - 1 for z = x^2 <= 1, and erfc(x) * e^(x^2) for x >= 0.45, as in shared/math.h.
RB_INLINE Vec erf_tail(Vec z) {
  Vec p = splat(1.0589381e-06f);
  p = fma(p, z, splat(-1.39093399e-05f));
  p = fma(p, z, splat(0.000119565622f));
  p = fma(p, z, splat(-0.000854263781f));
  p = fma(p, z, splat(0.00522378366f));
  p = fma(p, z, splat(-0.0268661324f));
  p = fma(p, z, splat(0.112837911f));
  p = fma(p, z, splat(-0.376126379f));
  return fma(p, z, splat(0.128379166f));
}
RB_INLINE Vec scaled_erfc(Vec x) {
  const Vec t = (x - splat(2.0f)) / (x + splat(2.0f));
  Vec p = splat(0.000216500615f);
  p = fma(p, t, splat(-0.000310246483f));
  p = fma(p, t, splat(-0.00147112692f));
  p = fma(p, t, splat(0.00121508224f));
  p = fma(p, t, splat(0.00872811582f));
  p = fma(p, t, splat(-0.00802405644f));
  p = fma(p, t, splat(-0.0542207919f));
  p = fma(p, t, splat(0.164050549f));
  p = fma(p, t, splat(-0.166030362f));
  p = fma(p, t, splat(-0.0927638113f));
  p = fma(p, t, splat(1.27697837f));
  return p / fma(splat(2.0f), x, splat(1.0f));
}

// The normal distribution's cumulative function, erfc(-x / sqrt(2)) / 2; absolute error about 1e-7.
RB_INLINE Vec normcdf(Vec x) {
  const Vec t = x * splat(0.707106781f);
  const Vec near = fma(splat(0.5f), fma(t, erf_tail(t * t), t), splat(0.5f));
  const Vec a = min(splat(10.1f), max(-t, t));
  const Vec square = a * a;
  const Vec tail = splat(0.5f) * exp(-square) * scaled_erfc(a);
  const Vec far = below(x, 0.0f, tail, splat(1.0f) - tail);
  return below(a, 0.5f, near, far);
}

// Absolute error about 1e-7: for scores, not for a tanh of its own.
RB_INLINE Vec tanh_of_score(Vec x) {
  return splat(1.0f) - splat(2.0f) / (splat(1.0f) + exp(x + x));
}

}  // namespace
}  // namespace rbee::cpu
