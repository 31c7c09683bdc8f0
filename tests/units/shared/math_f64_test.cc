// backends/shared/math_f64.h against libm in long double: the worst error in units of the last
// place over samples of the whole range, and C's special values.
#include "backends/shared/math_f64.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/units/shared/steps.h"

namespace rbee {
namespace {

namespace f64 = shared::f64;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Error of `got` in units of the last place of the double nearest to `want`.
double ulps(double got, long double want) {
  const auto rounded = static_cast<double>(want);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : kInf;
  if (std::isinf(rounded)) return got == rounded ? 0 : kInf;
  const int exponent = std::max(std::ilogb(rounded == 0 ? 0x1p-1074 : rounded), -1022);
  return static_cast<double>(std::fabs(got - want) / std::ldexp(1.0L, exponent - 52));
}

struct Worst {
  double ulp = 0;
  double at = 0;
  void see(double error, double x) {
    if (error <= ulp) return;
    ulp = error;
    at = x;
  }
};

struct Function {
  const char* name;
  double (*ours)(double);
  long double (*exact)(long double);
  double bound;  // ulp
};

class SharedMathF64 : public ::testing::TestWithParam<Function> {};

TEST_P(SharedMathF64, StaysWithinItsBoundEverywhere) {
  const Function& f = GetParam();
  Worst worst;
  const auto see = [&](double x) {
    worst.see(ulps(f.ours(x), f.exact(x)), x);
    worst.see(ulps(f.ours(-x), f.exact(-x)), -x);
  };
  // Every order of magnitude, then the range where most functions bend.
  for (uint64_t bits = 0; bits <= 0x7ff0000000000000u; bits += 0x0000'5a3b'71c9'e2f7u / 4) {
    see(std::bit_cast<double>(bits));
  }
  for_steps(0, 40, 0x1.93p-13, see);
  RecordProperty("worst_ulp", std::to_string(worst.ulp));
  EXPECT_LE(worst.ulp, f.bound) << f.name << " at " << worst.at;
}

INSTANTIATE_TEST_SUITE_P(Functions, SharedMathF64,
                         ::testing::Values(Function{"exp", f64::exp, std::exp, 1.5},
                                           Function{"expm1", f64::expm1, std::expm1, 2},
                                           Function{"log", f64::log, std::log, 1.5},
                                           Function{"tanh", f64::tanh, std::tanh, 3},
                                           Function{"erf", f64::erf, std::erf, 2},
                                           Function{"erfc", f64::erfc, std::erfc, 4},
                                           Function{"sin", f64::sin, std::sin, 2},
                                           Function{"cos", f64::cos, std::cos, 2}),
                         [](const auto& p) { return p.param.name; });

// The double nearest to a multiple of pi / 2 (Muller 2016, table 11.1): 61 bits cancel.
TEST(SharedMathF64, ReducesTheWorstAngle) {
  const double x = std::ldexp(6381956970095103.0, 797);
  EXPECT_LE(ulps(f64::cos(x), std::cos(static_cast<long double>(x))), 2);
  EXPECT_LE(ulps(f64::sin(x), std::sin(static_cast<long double>(x))), 2);
}

TEST(SharedMathF64Pow, StaysWithinItsBound) {
  Worst worst;
  double exponent = 0;
  const auto see = [&](double x, double y) {
    const double error =
        ulps(f64::pow(x, y), std::pow(static_cast<long double>(x), static_cast<long double>(y)));
    if (error > worst.ulp) exponent = y;
    worst.see(error, x);
  };
  for (uint64_t bits = 1; bits < 0x7ff0000000000000u; bits += 0x0007'5a3b'71c9'e2f7u) {
    for_steps(-40, 40, 0.37109375, [&](double y) { see(std::bit_cast<double>(bits), y); });
  }
  // Large exponents magnify the logarithm's error.
  for_steps(0.5, 2, 0x1.3p-9,
            [&](double x) { for_steps(-1000, 1000, 7.3, [&](double y) { see(x, y); }); });
  RecordProperty("worst_ulp", std::to_string(worst.ulp));
  EXPECT_LE(worst.ulp, 1.5) << worst.at << " ^ " << exponent;
}

TEST(SharedMathF64Pow, SpecialValuesAreThoseOfC) {
  const double values[] = {0.0,  -0.0,  1.0,    -1.0,   0.5,  -0.5,
                           2.0,  -2.0,  3.0,    -3.0,   kInf, -kInf,
                           kNan, 1e300, -1e300, 5e-324, 2.5,  9007199254740993.0};
  for (const double x : values) {
    for (const double y : values) {
      const double got = f64::pow(x, y);
      const double want = std::pow(x, y);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << x << " ^ " << y << " gave " << got;
      } else {
        EXPECT_LE(ulps(got, want), 1) << x << " ^ " << y;
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << " ^ " << y;
      }
    }
  }
}

TEST(SharedMathF64, SpecialValuesAreThoseOfC) {
  EXPECT_EQ(f64::exp(-kInf), 0.0);
  EXPECT_EQ(f64::exp(kInf), kInf);
  EXPECT_EQ(f64::log(0.0), -kInf);
  EXPECT_EQ(f64::log(-0.0), -kInf);
  EXPECT_TRUE(std::isnan(f64::log(-1.0)));
  EXPECT_EQ(f64::tanh(-kInf), -1.0);
  EXPECT_EQ(f64::erf(kInf), 1.0);
  EXPECT_EQ(f64::erfc(kInf), 0.0);
  EXPECT_EQ(f64::erfc(-kInf), 2.0);
  EXPECT_TRUE(std::isnan(f64::sin(kInf)));
  EXPECT_TRUE(std::isnan(f64::cos(-kInf)));
  EXPECT_TRUE(std::signbit(f64::sin(-0.0)));
  EXPECT_TRUE(std::signbit(f64::tanh(-0.0)));
  using Fn = double (*)(double);
  const Fn all[] = {f64::exp, f64::expm1, f64::log, f64::tanh,
                    f64::erf, f64::erfc,  f64::sin, f64::cos};
  for (const Fn f : all) {
    EXPECT_TRUE(std::isnan(f(kNan)));
  }
}

}  // namespace
}  // namespace rbee
