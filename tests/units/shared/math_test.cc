// backends/shared/math.h against libm in double: the worst error in units of the last place over
// dense samples of the whole range, and C's special values.
#include "backends/shared/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/units/shared/steps.h"

namespace rbee {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Error of `got` in units of the last place of the float nearest to `want`.
double ulps(float got, double want) {
  const float rounded = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : kInf;
  if (std::isinf(rounded)) return got == rounded ? 0 : kInf;
  const int exponent = std::max(std::ilogb(rounded == 0 ? 0x1p-149f : rounded), -126);
  return std::fabs(got - want) / std::ldexp(1.0, exponent - 23);
}

// The worst error over every `step`-th float, both signs; `at` tells where.
double worst(float (*f)(float), double (*g)(double), uint32_t step, float& at) {
  double most = 0;
  for (uint64_t bits = 0; bits <= 0x7f800000u; bits += step) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(bits) | sign);
      const double error = ulps(f(x), g(x));
      if (error <= most) continue;
      most = error;
      at = x;
    }
  }
  return most;
}

struct Function {
  const char* name;
  float (*ours)(float);
  double (*exact)(double);
  double bound;  // ulp
};

class SharedMath : public ::testing::TestWithParam<Function> {};

TEST_P(SharedMath, StaysWithinItsBoundEverywhere) {
  const Function& f = GetParam();
  float at = 0;
  const double most = worst(f.ours, f.exact, 997, at);
  RecordProperty("worst_ulp", std::to_string(most));
  EXPECT_LE(most, f.bound) << f.name << " at " << at;
}

INSTANTIATE_TEST_SUITE_P(Functions, SharedMath,
                         ::testing::Values(Function{"exp", shared::exp, std::exp, 1.5},
                                           Function{"expm1", shared::expm1, std::expm1, 2},
                                           Function{"log", shared::log, std::log, 1.5},
                                           Function{"tanh", shared::tanh, std::tanh, 3},
                                           Function{"erf", shared::erf, std::erf, 2},
                                           Function{"erfc", shared::erfc, std::erfc, 4},
                                           Function{"sin", shared::sin, std::sin, 2.5},
                                           Function{"cos", shared::cos, std::cos, 2.5}),
                         [](const auto& p) { return p.param.name; });

TEST(SharedMathPow, StaysWithinItsBound) {
  double most = 0;
  float at_x = 0, at_y = 0;
  const auto see = [&](float x, float y) {
    const double error = ulps(shared::pow(x, y), std::pow(double{x}, double{y}));
    if (error <= most) return;
    most = error;
    at_x = x;
    at_y = y;
  };
  for (uint64_t bits = 1; bits < 0x7f800000u; bits += 1'299'709) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    for_steps(-40, 40, 0.37109375, [&](double y) { see(x, static_cast<float>(y)); });
  }
  // Large exponents magnify log2's error.
  for_steps(0.5, 2, 0x1.3p-12, [&](double x) {
    for_steps(-120, 120, 7.3, [&](double y) { see(static_cast<float>(x), static_cast<float>(y)); });
  });
  RecordProperty("worst_ulp", std::to_string(most));
  EXPECT_LE(most, 2) << at_x << " ^ " << at_y;
}

TEST(SharedMathPow, SpecialValuesAreThoseOfC) {
  const float values[] = {0.0f,  -0.0f, 1.0f,  -1.0f, 0.5f,  -0.5f,  2.0f,     -2.0f,       3.0f,
                          -3.0f, kInf,  -kInf, kNan,  1e30f, -1e30f, 1.5e-45f, 16777217.0f, 2.5f};
  for (const float x : values) {
    for (const float y : values) {
      const float got = shared::pow(x, y);
      const float want = std::pow(x, y);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << x << " ^ " << y << " gave " << got;
      } else {
        EXPECT_LE(ulps(got, want), 1) << x << " ^ " << y;
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << " ^ " << y;
      }
    }
  }
}

TEST(SharedMath, SpecialValuesAreThoseOfC) {
  EXPECT_EQ(shared::exp(-kInf), 0.0f);
  EXPECT_EQ(shared::exp(kInf), kInf);
  EXPECT_EQ(shared::log(0.0f), -kInf);
  EXPECT_EQ(shared::log(-0.0f), -kInf);
  EXPECT_TRUE(std::isnan(shared::log(-1.0f)));
  EXPECT_EQ(shared::tanh(-kInf), -1.0f);
  EXPECT_EQ(shared::erf(kInf), 1.0f);
  EXPECT_EQ(shared::erfc(kInf), 0.0f);
  EXPECT_EQ(shared::erfc(-kInf), 2.0f);
  EXPECT_TRUE(std::isnan(shared::sin(kInf)));
  EXPECT_TRUE(std::isnan(shared::cos(-kInf)));
  EXPECT_TRUE(std::signbit(shared::sin(-0.0f)));
  EXPECT_TRUE(std::signbit(shared::tanh(-0.0f)));
  using Fn = float (*)(float);
  const Fn all[] = {shared::exp, shared::expm1, shared::log, shared::tanh,
                    shared::erf, shared::erfc,  shared::sin, shared::cos};
  for (const Fn f : all) {
    EXPECT_TRUE(std::isnan(f(kNan)));
  }
}

}  // namespace
}  // namespace rbee
