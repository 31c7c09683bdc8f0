#pragma once
// Functions of a Vec. Included by vec_avx2.h and vec_avx512.h.

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

RB_INLINE Vec sigmoid(Vec x) {
  return splat(1.0f) / (splat(1.0f) + exp(-x));
}

// Absolute error about 1e-7: for scores, not for a tanh of its own.
RB_INLINE Vec tanh_of_score(Vec x) {
  return splat(1.0f) - splat(2.0f) / (splat(1.0f) + exp(x + x));
}

}  // namespace
}  // namespace rbee::cpu
