// The f64 arithmetic of backends/metal/preamble.metal, the same text that Macs compile, against
// this processor's: every bit, but that any NaN is as good as another.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "backends/metal/preamble.metal"

namespace {

uint64_t bits(double x) {
  return std::bit_cast<uint64_t>(x);
}
double number(uint64_t x) {
  return std::bit_cast<double>(x);
}
uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

bool same(uint64_t got, double expected) {
  return got == bits(expected) || (std::isnan(number(got)) && std::isnan(expected));
}

// Zeros, subnormal and normal edges, halves, powers around the ends of integers and of smaller
// floats.
std::vector<uint64_t> special_numbers() {
  std::vector<uint64_t> all;
  using Limits = std::numeric_limits<double>;
  for (const double x : {0.0,
                         Limits::denorm_min(),
                         3 * Limits::denorm_min(),
                         Limits::min() - Limits::denorm_min(),
                         Limits::min(),
                         Limits::max(),
                         Limits::infinity(),
                         Limits::epsilon(),
                         0.5,
                         1.0,
                         1.0 + Limits::epsilon(),
                         1.5,
                         2.0,
                         2.5,
                         3.0,
                         1.0 / 3.0,
                         0x1p31,
                         0x1p31 - 1,
                         0x1p31 - 0.5,
                         0x1p32,
                         0x1p52,
                         0x1p52 + 0.5,
                         0x1p53,
                         0x1p53 - 1,
                         0x1p62,
                         0x1p63,
                         0x1p63 - 1024,
                         65504.0,
                         65519.0,
                         65520.0,
                         0x1p-24,
                         0x1p-25,
                         0x1.8p-25,
                         0x1p-14,
                         0x1.ffcp-15,
                         0x1p-126,
                         0x1p-149,
                         0x1p-150,
                         0x1.8p-150,
                         0x1.fffffep127,
                         0x1.ffffffp127,
                         0x1p128,
                         0x1p-537,
                         0x1p511,
                         0x1p-1022 * 1.5}) {
    all.push_back(bits(x));
    all.push_back(bits(-x));
  }
  all.push_back(bits(Limits::quiet_NaN()));
  return all;
}

// Fails at the first operation that differs, with its operands.
testing::AssertionResult agree(uint64_t a, uint64_t b, uint64_t c) {
  const double x = number(a), y = number(b), z = number(c);
  const auto wrong = [&](const char* name) {
    return testing::AssertionFailure()
           << name << " of " << std::hexfloat << x << ", " << y << ", " << z;
  };
  if (!same(rb_f64_add(a, b), x + y)) return wrong("add");
  if (!same(rb_f64_sub(a, b), x - y)) return wrong("sub");
  if (!same(rb_f64_mul(a, b), x * y)) return wrong("mul");
  if (!same(rb_f64_div(a, b), x / y)) return wrong("div");
  if (!same(rb_f64_fma(a, b, c), std::fma(x, y, z))) return wrong("fma");
  if (rb_f64_equal(a, b) != (x == y)) return wrong("equal");
  if (rb_f64_less(a, b) != (x < y)) return wrong("less");
  if (rb_f64_at_most(a, b) != (x <= y)) return wrong("at_most");
  if (rb_f64_less_or_greater(a, b) != (x < y || x > y)) return wrong("less_or_greater");
  if (rb_f64_unordered(a, b) != (std::isnan(x) || std::isnan(y))) return wrong("unordered");
  return testing::AssertionSuccess();
}

template <class Whole>
bool same_whole(double x, Whole got) {
  const double least = static_cast<double>(std::numeric_limits<Whole>::min());
  const double end = std::ldexp(1.0, std::numeric_limits<Whole>::digits);
  if (std::isnan(x)) return got == 0;
  if (x < least) return got == std::numeric_limits<Whole>::min();
  if (x >= end) return got == std::numeric_limits<Whole>::max();
  return got == static_cast<Whole>(x);
}

testing::AssertionResult agree(uint64_t a) {
  const double x = number(a);
  const auto wrong = [&](const char* name) {
    return testing::AssertionFailure()
           << name << " of " << std::hexfloat << x << ", bits " << std::hex << a;
  };
  if (!same(rb_f64_sqrt(a), std::sqrt(x))) return wrong("sqrt");
  if (!same(rb_f64_floor(a), std::floor(x))) return wrong("floor");
  if (!same(rb_f64_ceil(a), std::ceil(x))) return wrong("ceil");
  const float narrow = static_cast<float>(x);
  if (bits(rb_f64_to_float(a)) != bits(narrow) && !std::isnan(x)) return wrong("to_float");
  if (std::isnan(x) != std::isnan(rb_f64_to_float(a))) return wrong("to_float");
  const auto half_of = [](_Float16 h) { return std::bit_cast<uint16_t>(h); };
  if (std::isnan(x) ? !std::isnan(static_cast<float>(rb_f64_to_half(a)))
                    : half_of(rb_f64_to_half(a)) != half_of(static_cast<_Float16>(x))) {
    return wrong("to_half");
  }
  const float any = std::bit_cast<float>(static_cast<uint32_t>(a));
  if (!same(rb_f64_from_float(any), static_cast<double>(any))) return wrong("from_float");
  if (!same(rb_f64_from_ulong(a), static_cast<double>(a))) return wrong("from_ulong");
  if (!same(rb_f64_from_long(static_cast<int64_t>(a)),
            static_cast<double>(static_cast<int64_t>(a)))) {
    return wrong("from_long");
  }
  if (!same(rb_f64_from_uint(static_cast<uint32_t>(a)),
            static_cast<double>(static_cast<uint32_t>(a)))) {
    return wrong("from_uint");
  }
  if (!same(rb_f64_from_int(static_cast<int32_t>(a)),
            static_cast<double>(static_cast<int32_t>(a)))) {
    return wrong("from_int");
  }
  if (!same_whole<uint64_t>(x, rb_f64_to_ulong(a))) return wrong("to_ulong");
  if (!same_whole<int64_t>(x, rb_f64_to_long(a))) return wrong("to_long");
  if (!same_whole<uint32_t>(x, rb_f64_to_uint(a))) return wrong("to_uint");
  if (!same_whole<int32_t>(x, rb_f64_to_int(a))) return wrong("to_int");
  return testing::AssertionSuccess();
}

TEST(MetalF64, SpecialNumbers) {
  const std::vector<uint64_t> all = special_numbers();
  for (const uint64_t a : all) {
    ASSERT_TRUE(agree(a));
    for (const uint64_t b : all) {
      for (const uint64_t c : all) ASSERT_TRUE(agree(a, b, c));
    }
  }
}

// Any bits: exponents far apart, subnormal numbers, NaN.
TEST(MetalF64, RandomBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t a = random(), b = random(), c = random();
    ASSERT_TRUE(agree(a));
    ASSERT_TRUE(agree(a, b, c));
  }
}

// Exponents near one another, and near a product's: sums that cancel, ties, subnormal results.
TEST(MetalF64, RandomNumbersNearby) {
  std::mt19937_64 random(2);
  const auto near = [&](int exponent, int spread) {
    const uint64_t r = random();
    const int e =
        exponent + static_cast<int>((r >> 53) % static_cast<uint64_t>(2 * spread + 1)) - spread;
    // Short fractions give ties.
    const uint64_t fraction = r & 0xfffffffffffffu;
    const uint64_t shown =
        (r >> 52 & 1) != 0 ? fraction : fraction & ~((uint64_t{1} << (r % 53)) - 1);
    return (r & 0x8000000000000000u) |
           static_cast<uint64_t>(e < 0      ? 0
                                 : e > 2046 ? 2046
                                            : e)
               << 52 |
           shown;
  };
  for (int i = 0; i < 1'000'000; ++i) {
    const int x = static_cast<int>(random() % 2047), y = static_cast<int>(random() % 2047);
    ASSERT_TRUE(agree(near(x, 2), near(x, 2), near(x, 60)));
    ASSERT_TRUE(agree(near(x, 2), near(y, 2), near(x + y - 1023, 110)));
    ASSERT_TRUE(agree(near(static_cast<int>(random() % 300) + 870, 2)));
  }
}

}  // namespace
