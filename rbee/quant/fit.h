#pragma once
// Weighted least-squares fits of x[i] by d * q[i] (or d * q[i] + b) with q[i] from a set of codes.
// Given the codes the best d and b are those of linear regression; given d and b the best codes are
// the nearest ones. A fit tries a range of scales around the one that maps the extreme values to
// the extreme codes, solves for d and b after each, and then alternates the two steps from the
// best.
//
// n is a multiple of kLanes. Sums are of residuals, not of x, so that they keep their precision
// when the residuals are small.

#include <algorithm>
#include <cmath>

#include "rbee/core/half.h"
#include "rbee/quant/codes.h"
#include "rbee/quant/encode.h"

namespace rbee::quant {

// Groups below this are zero: far less than a half can scale, and squares stay normal above it.
inline constexpr float kNothing = 0x1p-60f;

// The nearest finite half.
inline f16 finite_half(float x) {
  return to_f16(std::clamp(x, -kLargestHalf, kLargestHalf));
}

inline float round_to_half(float x) {
  return to_float(finite_half(x));
}

inline float inverse_or_zero(float d) {
  return std::fabs(d) < 0x1p-126f ? 0.0f : 1.0f / d;
}

// Sums over i of w, w q, w q^2, w r, w r q and w r^2, where q is the nearest code and r what is
// left of x.
struct Sums {
  float w = 0;
  float q = 0;
  float qq = 0;
  float r = 0;
  float rq = 0;
  float rr = 0;
};

// Without offset: fills qq, rq and rr.
template <class Codes>
inline Sums measure(const float* x, const float* weights, int n, float d) {
  const Lanes inverse = splat(inverse_or_zero(d));
  const Lanes scale = splat(d);
  Lanes qq{};
  Lanes rq{};
  Lanes rr{};
  for (int i = 0; i < n; i += kLanes) {
    const Lanes value = load(x + i);
    const Lanes w = load(weights + i);
    const Lanes q = Codes::nearest(value * inverse);
    const Lanes r = value - scale * q;
    const Lanes wq = w * q;
    qq += wq * q;
    rq += wq * r;
    rr += w * r * r;
  }
  return {.qq = sum(qq), .rq = sum(rq), .rr = sum(rr)};
}

template <class Codes>
inline Sums measure(const float* x, const float* weights, int n, float d, float b) {
  const Lanes inverse = splat(inverse_or_zero(d));
  const Lanes scale = splat(d);
  const Lanes offset = splat(b);
  Lanes sums[6] = {};
  for (int i = 0; i < n; i += kLanes) {
    const Lanes value = load(x + i) - offset;
    const Lanes w = load(weights + i);
    const Lanes q = Codes::nearest(value * inverse);
    const Lanes r = value - scale * q;
    const Lanes wq = w * q;
    const Lanes wr = w * r;
    sums[0] += w;
    sums[1] += wq;
    sums[2] += wq * q;
    sums[3] += wr;
    sums[4] += wr * q;
    sums[5] += wr * r;
  }
  return {sum(sums[0]), sum(sums[1]), sum(sums[2]), sum(sums[3]), sum(sums[4]), sum(sums[5])};
}

struct ScaleFit {
  float d = 0;
  float error = 0;      // the sum of squares that is left
  float curvature = 0;  // half the second derivative of that sum by d
};

template <class Codes>
inline ScaleFit regress(const float* x, const float* weights, int n, float d) {
  const Sums s = measure<Codes>(x, weights, n, d);
  if (!(s.qq > 0)) return {0.0f, s.rr, 0.0f};
  return {d + s.rq / s.qq, s.rr - s.rq * (s.rq / s.qq), s.qq};
}

inline float extreme_value(const float* x, int n) {
  float extreme = 0;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  return extreme;
}

template <class Codes>
ScaleFit fit_scale(const float* x, const float* weights, int n) {
  const float extreme = extreme_value(x, n);
  if (std::fabs(extreme) < kNothing) return {};
  ScaleFit best{.error = HUGE_VALF};
  for (const float edge : {Codes::kLowest, Codes::kHighest}) {
    if (edge == 0) continue;
    for (int step = -Codes::kSteps; step <= Codes::kSteps; ++step) {
      const float code = edge + static_cast<float>(step) * Codes::kStep;
      const ScaleFit fit = regress<Codes>(x, weights, n, extreme / code);
      if (fit.error < best.error) best = fit;
    }
  }
  constexpr int kPolish = 4;
  for (int i = 0; i < kPolish; ++i) {
    const ScaleFit fit = regress<Codes>(x, weights, n, best.d);
    if (!(fit.error < best.error)) break;
    best = fit;
  }
  return best;
}

enum class Offset { any, not_positive };

struct OffsetFit {
  float d = 0;
  float b = 0;
  float error = 0;
  float curvature = 0;  // of error by d when b follows
};

template <class Codes, Offset kOffset>
inline OffsetFit regress(const float* x, const float* weights, int n, float d, float b) {
  const Sums s = measure<Codes>(x, weights, n, d, b);
  const float spread = s.qq - s.q * (s.q / s.w);
  constexpr float kNoise = 1e-6f;   // of the difference, in float32
  if (!(spread > kNoise * s.qq)) {  // all codes the same: nothing is known about the offset
    if (!(s.qq > 0)) return {d, b, s.rr, 0.0f};
    return {d + s.rq / s.qq, b, s.rr - s.rq * (s.rq / s.qq), s.qq};
  }
  const float change_d = (s.rq - s.q * (s.r / s.w)) / spread;
  const float change_b = (s.r - change_d * s.q) / s.w;
  if (kOffset == Offset::any || b + change_b <= 0) {
    return {d + change_d, b + change_b, s.rr - change_d * s.rq - change_b * s.r, spread};
  }
  const float rq = s.rq + b * s.q;  // with the offset back at zero
  const float alone = rq / s.qq;
  return {d + alone, 0.0f, s.rr + b * (2 * s.r + b * s.w) - alone * rq, s.qq};
}

// Codes start at zero.
template <class Codes, Offset kOffset>
OffsetFit fit_offset(const float* x, const float* weights, int n) {
  const auto [least, most] = std::minmax_element(x, x + n);
  const float low = kOffset == Offset::any ? *least : std::min(*least, 0.0f);
  const float range = *most - low;
  if (!(range >= kNothing)) return {0.0f, low, 0.0f, 0.0f};
  OffsetFit best{.error = HUGE_VALF};
  for (int step = -Codes::kSteps; step <= Codes::kSteps; ++step) {
    const float top = Codes::kHighest + static_cast<float>(step) * Codes::kStep;
    const OffsetFit fit = regress<Codes, kOffset>(x, weights, n, range / top, low);
    if (fit.error < best.error) best = fit;
  }
  constexpr int kPolish = 4;
  for (int i = 0; i < kPolish; ++i) {
    const OffsetFit fit = regress<Codes, kOffset>(x, weights, n, best.d, best.b);
    if (!(fit.error < best.error)) break;
    best = fit;
  }
  return best;
}

}  // namespace rbee::quant
