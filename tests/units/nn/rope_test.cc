// Frequencies of every scaling against independently written formulas, and the rotation against
// complex numbers.

#include "rbee/nn/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "tests/checkpoints/checkpoint_files.h"

namespace rbee::test {
namespace {

using nn::RopeOptions;
using nn::RopeScaling;

constexpr double kPi = std::numbers::pi;

// Positions in a full turn of pair i.
double wavelength(double base, int64_t dim, size_t i) {
  return 2 * kPi * std::exp(std::log(base) * 2 * static_cast<double>(i) / static_cast<double>(dim));
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& wanted) {
  ASSERT_EQ(actual.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(actual[i], wanted[i], 1e-12 * std::fabs(wanted[i])) << "pair " << i;
  }
}

std::vector<double> plain(double base, int64_t dim) {
  std::vector<double> radians;
  radians.reserve(static_cast<size_t>(dim / 2));
  for (size_t i = 0; i < static_cast<size_t>(dim / 2); ++i) {
    radians.push_back(2 * kPi / wavelength(base, dim, i));
  }
  return radians;
}

TEST(RopeFrequencies, Plain) {
  const auto result = nn::rope_frequencies({.rotary_dim = 8, .base = 10000}, 100);
  expect_near(result.radians, {1.0, 0.1, 0.01, 0.001});
  EXPECT_EQ(result.magnitude, 1.0);
}

TEST(RopeFrequencies, LinearTurnsAtTheInterpolatedPosition) {
  const RopeOptions options{
      .rotary_dim = 64, .base = 500000, .scaling = RopeScaling::linear, .factor = 8};
  const auto result = nn::rope_frequencies(options, 100);
  std::vector<double> wanted = plain(500000, 64);
  for (double& radians : wanted) radians *= 0.125;
  expect_near(result.radians, wanted);
  EXPECT_EQ(result.magnitude, 1.0);
}

TEST(RopeFrequencies, DynamicKeepsTheBaseWithinTheTrainedContext) {
  const RopeOptions options{.rotary_dim = 32,
                            .base = 10000,
                            .scaling = RopeScaling::dynamic,
                            .factor = 4,
                            .trained_positions = 2048};
  for (const int64_t positions : {1, 100, 2048}) {
    expect_near(nn::rope_frequencies(options, positions).radians, plain(10000, 32));
  }
}

// The new base slows the slowest pair by exactly the excess; the fastest keeps its speed, and the
// others form a geometric series.
TEST(RopeFrequencies, DynamicStretchesTheSlowestPairByTheExcess) {
  const RopeOptions options{.rotary_dim = 32,
                            .base = 10000,
                            .scaling = RopeScaling::dynamic,
                            .factor = 4,
                            .trained_positions = 2048};
  const std::vector<double> radians = nn::rope_frequencies(options, 6144).radians;
  const double excess = 4 * (6144.0 / 2048.0) - 3;
  const std::vector<double> before = plain(10000, 32);
  ASSERT_EQ(radians.size(), before.size());
  EXPECT_DOUBLE_EQ(radians.front(), 1.0);
  EXPECT_NEAR(before.back() / radians.back(), excess, 1e-9);
  for (size_t i = 0; i + 1 < radians.size(); ++i) {
    EXPECT_NEAR(radians[i + 1] / radians[i], radians[1], 1e-12);
  }
}

struct YarnBounds {
  double low = 0, high = 0;  // pairs
};

// The pairs with beta_fast and beta_slow turns in `original` positions, found by bisection over the
// wavelength; rounded outwards if they are whole.
YarnBounds yarn_bounds(const RopeOptions& options) {
  const auto pair_of = [&](double turns) {
    double low = -1000, high = 1000;
    for (int i = 0; i < 200; ++i) {
      const double middle = (low + high) / 2;
      const double length =
          2 * kPi * std::pow(options.base, 2 * middle / static_cast<double>(options.rotary_dim));
      const bool faster = static_cast<double>(options.original_positions) / length > turns;
      (faster ? low : high) = middle;
    }
    return low;
  };
  YarnBounds bounds{pair_of(options.beta_fast), pair_of(options.beta_slow)};
  if (options.truncate) bounds = {std::floor(bounds.low), std::ceil(bounds.high)};
  return bounds;
}

// Unchanged up to the lower bound, divided from the upper bound on, linear between.
std::vector<double> yarn_radians(const RopeOptions& options) {
  const auto [low, high] = yarn_bounds(options);
  std::vector<double> radians = plain(options.base, options.rotary_dim);
  for (size_t i = 0; i < radians.size(); ++i) {
    const auto at = static_cast<double>(i);
    if (at <= low) continue;
    const double divided = at >= high ? 1.0 : (at - low) / (high - low);
    radians[i] *= (1 - divided) + divided / options.factor;
  }
  return radians;
}

RopeOptions yarn_options() {
  return {.rotary_dim = 64,
          .base = 10000,
          .scaling = RopeScaling::yarn,
          .factor = 8,
          .original_positions = 4096};
}

TEST(RopeFrequencies, Yarn) {
  for (const bool truncate : {true, false}) {
    RopeOptions options = yarn_options();
    options.truncate = truncate;
    const auto [low, high] = yarn_bounds(options);
    ASSERT_GT(low, 0);  // all three parts of the ramp exist
    ASSERT_LT(high, 31);
    const auto result = nn::rope_frequencies(options, 32768);
    expect_near(result.radians, yarn_radians(options));
    EXPECT_DOUBLE_EQ(result.radians.front(), 1.0);
    EXPECT_NEAR(result.magnitude, 0.1 * std::log(8.0) + 1, 1e-12);
  }
}

TEST(RopeFrequencies, YarnWithOtherBetas) {
  RopeOptions options = yarn_options();
  options.beta_fast = 16;
  options.beta_slow = 4;
  const auto narrow = nn::rope_frequencies(options, 32768).radians;
  expect_near(narrow, yarn_radians(options));
  EXPECT_NE(narrow, nn::rope_frequencies(yarn_options(), 32768).radians);
}

// Bounds outside the head move to its ends; the upper one moves to the last element.
TEST(RopeFrequencies, YarnBoundsStayWithinTheHead) {
  RopeOptions options = yarn_options();
  options.base = 100;
  options.original_positions = 1000000;
  options.beta_fast = 1e6;
  const auto result = nn::rope_frequencies(options, 2000000);
  std::vector<double> wanted = plain(100, 64);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double divided = static_cast<double>(i) / 63;
    wanted[i] *= (1 - divided) + divided / 8;
  }
  expect_near(result.radians, wanted);
}

TEST(RopeFrequencies, YarnMagnitude) {
  RopeOptions options = yarn_options();
  options.mscale = 0.707;
  EXPECT_NEAR(nn::rope_frequencies(options, 64).magnitude, 0.1 * std::log(8.0) + 1, 1e-12);
  options.mscale_all_dim = 1.5;
  EXPECT_NEAR(nn::rope_frequencies(options, 64).magnitude,
              (0.0707 * std::log(8.0) + 1) / (0.15 * std::log(8.0) + 1), 1e-12);
  options.attention_factor = 1.25;
  EXPECT_EQ(nn::rope_frequencies(options, 64).magnitude, 1.25);
  options = yarn_options();
  options.factor = 1;
  EXPECT_EQ(nn::rope_frequencies(options, 64).magnitude, 1.0);
}

// The code of Grattafiori et al. 2024: three cases by wavelength.
TEST(RopeFrequencies, Llama3) {
  const RopeOptions options{.rotary_dim = 128,
                            .base = 500000,
                            .scaling = RopeScaling::llama3,
                            .factor = 32,
                            .original_positions = 8192,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4};
  const auto result = nn::rope_frequencies(options, 100);
  std::vector<double> wanted = plain(500000, 128);
  int kept = 0, divided = 0, between = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double length = wavelength(500000, 128, i);
    if (length < 8192 / 4.0) {
      ++kept;
    } else if (length > 8192) {
      wanted[i] /= 32;
      ++divided;
    } else {
      const double smooth = (8192 / length - 1) / 3;
      wanted[i] = (1 - smooth) * wanted[i] / 32 + smooth * wanted[i];
      ++between;
    }
  }
  expect_near(result.radians, wanted);
  EXPECT_GT(kept, 0);
  EXPECT_GT(divided, 0);
  EXPECT_GT(between, 0);
  EXPECT_EQ(result.magnitude, 1.0);
}

TEST(RopeFrequencies, LongropePicksItsSetByTheContext) {
  RopeOptions options{.rotary_dim = 4,
                      .base = 100,
                      .scaling = RopeScaling::longrope,
                      .factor = 32,
                      .original_positions = 4096,
                      .short_factors = {1, 2},
                      .long_factors = {4, 8}};
  expect_near(nn::rope_frequencies(options, 4096).radians, {1.0, 0.05});
  expect_near(nn::rope_frequencies(options, 4097).radians, {0.25, 0.0125});
  // ln 32 / ln 4096 = 5 / 12
  EXPECT_NEAR(nn::rope_frequencies(options, 10).magnitude, std::sqrt(17.0 / 12), 1e-12);
  options.attention_factor = 1.5;
  EXPECT_EQ(nn::rope_frequencies(options, 10).magnitude, 1.5);
  options.attention_factor.reset();
  options.factor = 1;
  EXPECT_EQ(nn::rope_frequencies(options, 10).magnitude, 1.0);
}

TEST(RopeFrequencies, DivisorsComeOnTopOfAScaling) {
  const RopeOptions options{.rotary_dim = 4,
                            .base = 100,
                            .scaling = RopeScaling::linear,
                            .factor = 2,
                            .frequency_divisors = {1, 5}};
  expect_near(nn::rope_frequencies(options, 10).radians, {0.5, 0.01});
}

TEST(RopeFrequencies, ErrorsNameTheOption) {
  struct Bad {
    RopeOptions options;
    std::vector<std::string> parts;
    int64_t positions = 16;
  };
  const Bad cases[] = {
      {{.rotary_dim = 0}, {"rotary_dim is 0"}},
      {{.rotary_dim = 7}, {"rotary_dim is 7"}},
      {{.rotary_dim = 8, .base = 1}, {"base is 1"}},
      {{.rotary_dim = 8, .base = std::nan("")}, {"base is"}},
      {{.rotary_dim = 8, .factor = 0}, {"factor is 0"}},
      {{.rotary_dim = 8, .factor = -INFINITY}, {"factor is -inf"}},
      {{.rotary_dim = 8}, {"0 positions"}, 0},
      {{.rotary_dim = 8, .scaling = RopeScaling::dynamic}, {"dynamic", "trained positions"}},
      {{.rotary_dim = 2, .scaling = RopeScaling::dynamic, .trained_positions = 8},
       {"dynamic", "two rotated elements"}},
      {{.rotary_dim = 8, .scaling = RopeScaling::yarn}, {"original positions are 0"}},
      {{.rotary_dim = 8, .scaling = RopeScaling::llama3}, {"original positions are 0"}},
      {{.rotary_dim = 8,
        .scaling = RopeScaling::llama3,
        .original_positions = 8,
        .low_freq_factor = 4},
       {"high_freq_factor is 4", "low_freq_factor 4"}},
      {{.rotary_dim = 4,
        .scaling = RopeScaling::longrope,
        .original_positions = 8,
        .short_factors = {1, 1},
        .long_factors = {1}},
       {"long_factor has 1 values, wanted 2"}},
      {{.rotary_dim = 4,
        .scaling = RopeScaling::longrope,
        .original_positions = 16,
        .short_factors = {1, -2}},
       {"short_factor[1] is -2"}},
      {{.rotary_dim = 4, .frequency_divisors = {1}}, {"rope_freqs has 1 values, wanted 2"}},
  };
  for (const Bad& bad : cases) {
    SCOPED_TRACE(bad.parts.front());
    expect_error(Code::invalid_argument, bad.parts,
                 [&] { nn::rope_frequencies(bad.options, bad.positions); });
  }
}

TEST(Rope, MoreThanTheDeviceHasIsRefusedBeforeItIsFilled) {
  const RopeOptions options{.rotary_dim = int64_t{1} << 16};
  test::expect_error(Code::out_of_memory, {"rope", "2147483648 positions", "536870912 MiB", "free"},
                     [&] { nn::Rope(options, int64_t{1} << 31, cpu_device()); });
}

// Pairs as complex numbers, multiplied by magnitude * e^(i * position * radians).
TEST(Rope, TurnsPairsOfEitherLayoutAndLeavesTheRest) {
  constexpr int64_t kTokens = 3, kHeads = 2, kHeadDim = 8, kRotated = 6;
  const std::vector<int32_t> positions{0, 7, 1000};
  const std::vector<float> x = random_values(kTokens * kHeads * kHeadDim, 1);
  for (const RopeLayout layout : {RopeLayout::half, RopeLayout::interleaved}) {
    const RopeOptions options{.rotary_dim = kRotated,
                              .base = 50,
                              .layout = layout,
                              .scaling = RopeScaling::yarn,
                              .factor = 4,
                              .original_positions = 64,
                              .attention_factor = 1.5};
    const nn::Rope rope(options, 1001, cpu_device());
    EXPECT_EQ(rope.positions(), 1001);
    const std::vector<double> radians = nn::rope_frequencies(options, 1001).radians;
    std::vector<float> wanted = x;
    for (size_t row = 0; row < kTokens * kHeads; ++row) {
      const double position = positions[row / kHeads];
      for (size_t i = 0; i < kRotated / 2; ++i) {
        const bool half = layout == RopeLayout::half;
        const size_t first = row * kHeadDim + (half ? i : 2 * i);
        const size_t second = first + (half ? kRotated / 2 : 1);
        const std::complex<double> turned =
            std::complex<double>(x[first], x[second]) * std::polar(1.5, position * radians[i]);
        wanted[first] = static_cast<float>(turned.real());
        wanted[second] = static_cast<float>(turned.imag());
      }
    }
    const Tensor y =
        rope(device_tensor(x, {kTokens, kHeads, kHeadDim}), device_tensor(positions, {kTokens}));
    EXPECT_THAT(y.to_host<float>(), testing::Pointwise(testing::FloatNear(1e-6f), wanted));
  }
}

}  // namespace
}  // namespace rbee::test
