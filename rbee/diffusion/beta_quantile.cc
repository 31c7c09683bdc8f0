#include <cmath>

#include "rbee/diffusion/levels.h"

namespace rbee::diffusion {
namespace {

// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method;
// converges fast for x < (a + 1) / (a + b + 2).
double fraction(double x, double a, double b) {
  constexpr int kTerms = 300;
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m <= kTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    value *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return value;
}

double incomplete_beta(double x, double a, double b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  const double log_front =
      a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
  const double front = std::exp(log_front);
  if (x < (a + 1) / (a + b + 2)) return front * fraction(x, a, b) / a;
  return 1 - front * fraction(1 - x, b, a) / b;
}

}  // namespace

double beta_quantile(double p, double a, double b) {
  if (p <= 0 || p >= 1) return p <= 0 ? 0 : 1;
  constexpr int kHalvings = 200;
  double low = 0;
  double high = 1;
  for (int i = 0; i < kHalvings && high - low > 1e-17; ++i) {
    const double middle = (low + high) / 2;
    (incomplete_beta(middle, a, b) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace rbee::diffusion
