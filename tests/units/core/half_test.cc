// Every 16-bit and 8-bit float against the meaning of its bits, and rounding against a search for
// the nearest value.
#include "rbee/core/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace rbee {
namespace {

struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;  // if not, the top exponent holds numbers, and all ones are NaN

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
};

constexpr Format kF16 = {5, 10, true};
constexpr Format kBf16 = {8, 7, true};
constexpr Format kF8E4M3 = {4, 3, false};

// The value of the bits by the format's definition.
double meaning(const Format& f, uint32_t bits) {
  const uint32_t mantissa_mask = (1u << f.mantissa_bits) - 1;
  const uint32_t exponent_mask = (1u << f.exponent_bits) - 1;
  const uint32_t mantissa = bits & mantissa_mask;
  const auto exponent = static_cast<int>(bits >> f.mantissa_bits & exponent_mask);
  const double sign = (bits & f.sign_bit()) != 0 ? -1 : 1;
  if (exponent == static_cast<int>(exponent_mask)) {
    if (f.has_infinity) return mantissa == 0 ? sign * INFINITY : NAN;
    if (mantissa == mantissa_mask) return NAN;
  }
  const int scale = std::max(exponent, 1) - f.bias() - f.mantissa_bits;
  const uint32_t whole = exponent == 0 ? mantissa : mantissa | (mantissa_mask + 1);
  return sign * std::ldexp(static_cast<double>(whole), scale);
}

template <typename T>
void expect_every_value(const Format& f) {
  for (uint32_t bits = 0; bits < 2 * f.sign_bit(); ++bits) {
    const double want = meaning(f, bits);
    const float got = to_float(T{static_cast<decltype(T::bits)>(bits)});
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      continue;
    }
    ASSERT_EQ(got, want) << bits;
    ASSERT_EQ(std::signbit(got), std::signbit(want)) << bits;
  }
}

TEST(Half, EveryValueToFloat) {
  expect_every_value<f16>(kF16);
  expect_every_value<bf16>(kBf16);
  expect_every_value<f8e4m3>(kF8E4M3);
}

template <typename T, typename Convert>
void expect_round_trips(const Format& f, Convert convert) {
  for (uint32_t bits = 0; bits < 2 * f.sign_bit(); ++bits) {
    const float value = to_float(T{static_cast<decltype(T::bits)>(bits)});
    const T back = convert(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(to_float(back))) << bits;
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

TEST(Half, EveryValueSurvivesARoundTrip) {
  expect_round_trips<f16>(kF16, to_f16);
  expect_round_trips<bf16>(kBf16, to_bf16);
  expect_round_trips<f8e4m3>(kF8E4M3, to_f8e4m3);
}

// Between each two neighbours: just below, at and just above the middle. Ties go to even.
template <typename T, typename Convert>
void expect_nearest(const Format& f, uint32_t largest, Convert convert) {
  for (uint32_t bits = 0; bits < largest; ++bits) {
    const double low = meaning(f, bits);
    const double high = meaning(f, bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2) << "the middle is a float";
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    for (const uint32_t sign : {0u, f.sign_bit()}) {
      const float s = sign == 0 ? 1.0f : -1.0f;
      ASSERT_EQ(convert(s * middle).bits, even | sign) << middle;
      ASSERT_EQ(convert(s * std::nextafterf(middle, 0)).bits, bits | sign) << middle;
      ASSERT_EQ(convert(s * std::nextafterf(middle, INFINITY)).bits, (bits + 1) | sign) << middle;
    }
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  expect_nearest<f16>(kF16, 0x7bff, to_f16);
  expect_nearest<bf16>(kBf16, 0x7f7f, to_bf16);
  expect_nearest<f8e4m3>(kF8E4M3, 0x7e, to_f8e4m3);
}

TEST(Half, BeyondTheLargestValue) {
  EXPECT_EQ(to_f16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00) << "the tie goes to the even infinity";
  EXPECT_EQ(to_f16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(to_f8e4m3(448.0f).bits, 0x7e);
  EXPECT_EQ(to_f8e4m3(1e30f).bits, 0x7e) << "saturates";
  EXPECT_EQ(to_f8e4m3(-INFINITY).bits, 0xfe);
}

TEST(Half, NanStaysNan) {
  const float nans[] = {std::numeric_limits<float>::quiet_NaN(),
                        -std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0x7f800001u),
                        std::bit_cast<float>(0xffffffffu)};
  for (const float nan : nans) {
    EXPECT_TRUE(std::isnan(to_float(to_f16(nan))));
    EXPECT_TRUE(std::isnan(to_float(to_bf16(nan))));
    EXPECT_TRUE(std::isnan(to_float(to_f8e4m3(nan))));
    EXPECT_EQ(to_bf16(nan).bits & 0x40, 0x40) << "quiet";
  }
}

}  // namespace
}  // namespace rbee
