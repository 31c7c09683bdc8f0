// What the functions of rbee/ops add to the rotation's and group norm's kernels: which axis is
// time, which elements make a pair, which share a mean; and their checks.
#include "rbee/ops/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "rbee/ops/norm.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

using ::testing::Pointwise;

constexpr int64_t kBatch = 2, kHeads = 3, kTime = 5, kDim = 8;
constexpr int64_t kRotated = 6;  // the last two elements of a head stay

Device& host() {
  return *all_devices().front();
}

float angle(int64_t position, int64_t pair) {
  return 0.3f * static_cast<float>(position) - 0.7f * static_cast<float>(pair);
}

// (positions, kRotated / 2)
Tensor table(int64_t positions, float (*of)(float)) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(positions * kRotated / 2));
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t pair = 0; pair < kRotated / 2; ++pair) {
      values.push_back(of(angle(position, pair)));
    }
  }
  return from_host<float>(values, {positions, kRotated / 2}, host());
}
Tensor cosines(int64_t positions) {
  return table(positions, [](float x) { return std::cos(x); });
}
Tensor sines(int64_t positions) {
  return table(positions, [](float x) { return std::sin(x); });
}

std::vector<float> counted(int64_t count) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 17) - 8);
  return values;
}

// One head, its pairs turned as complex numbers.
void turn(float* head, int64_t position, RopeLayout layout) {
  for (int64_t pair = 0; pair < kRotated / 2; ++pair) {
    const bool half = layout == RopeLayout::half;
    float& real = head[half ? pair : 2 * pair];
    float& imaginary = head[half ? pair + kRotated / 2 : 2 * pair + 1];
    const std::complex<float> turned =
        std::complex<float>(real, imaginary) * std::polar(1.0f, angle(position, pair));
    real = turned.real();
    imaginary = turned.imag();
  }
}

using FourAxes = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);

// Heads of x follow one another; head i is at time `time_of(i)`.
void expect_rotation(FourAxes rotate, const Shape& shape, RopeLayout layout,
                     int64_t (*time_of)(int64_t)) {
  std::vector<float> wanted = counted(kBatch * kHeads * kTime * kDim);
  const Tensor x = from_host<float>(wanted, shape, host());
  const Tensor y = rotate(x, cosines(kTime + 2), sines(kTime + 2));
  for (int64_t i = 0; i < kBatch * kHeads * kTime; ++i) {
    turn(wanted.data() + i * kDim, time_of(i), layout);
  }
  EXPECT_EQ(y.shape(), shape);
  EXPECT_THAT(y.to_host<float>(), Pointwise(::testing::FloatNear(1e-5f), wanted));
  EXPECT_EQ(x.to_host<float>(), counted(x.numel())) << "x stays as it is";
}

TEST(Rope, TimeIsTheThirdAxis) {
  const auto time_of = [](int64_t head) { return head % kTime; };
  const Shape shape{kBatch, kHeads, kTime, kDim};
  expect_rotation(rope_half, shape, RopeLayout::half, time_of);
  expect_rotation(rope_interleaved, shape, RopeLayout::interleaved, time_of);
}

TEST(Rope, TimeIsTheSecondAxis) {
  expect_rotation(rope_thd, {kBatch, kTime, kHeads, kDim}, RopeLayout::half,
                  [](int64_t head) { return head / kHeads % kTime; });
}

TEST(Rope, RowsOfTheTablesAreThePositions) {
  const std::vector<int32_t> positions{4, 0, 3};
  std::vector<float> wanted = counted(3 * kHeads * kDim);
  const Tensor x = from_host<float>(wanted, {3, kHeads, kDim}, host());
  const Tensor y = rope(x, cosines(5), sines(5), from_host<int32_t>(positions, {3}, host()),
                        RopeLayout::interleaved);
  for (int64_t i = 0; i < 3 * kHeads; ++i) {
    turn(wanted.data() + i * kDim, positions[static_cast<size_t>(i / kHeads)],
         RopeLayout::interleaved);
  }
  EXPECT_THAT(y.to_host<float>(), Pointwise(::testing::FloatNear(1e-5f), wanted));
}

TEST(Rope, Checks) {
  const Tensor x = zeros({kBatch, kHeads, kTime, kDim}, DType::f32, host());
  const Tensor cos = cosines(kTime), sin = sines(kTime);
  expect_error("rope", "cos is f32 (4, 3)", "5 positions",
               [&] { rope_half(x, cosines(4), sines(4)); });
  expect_error("rope", "sin", "(4, 3)", [&] { rope_half(x, cos, sines(4)); });
  expect_error("rope", "cos is f16 (5, 3)", "wanted f32",
               [&] { rope_half(x, zeros({kTime, kRotated / 2}, DType::f16, host()), sin); });
  const Tensor wide = zeros({kTime, kDim}, DType::f32, host());
  expect_error("rope", "its 8 columns exceed", "(2, 3, 5, 8)", [&] { rope_half(x, wide, wide); });
  const Tensor tokens = zeros({2, kHeads, kDim}, DType::f32, host());
  expect_error("rope", "x", "(2, 3, 8)", [&] { rope_thd(tokens, cos, sin); });
  const auto at = [](std::vector<int32_t> positions) {
    return from_host<int32_t>(positions, {std::ssize(positions)}, host());
  };
  expect_error("rope", "position 5 is outside of 0 to 4", "",
               [&] { rope(tokens, cos, sin, at({0, 5}), RopeLayout::half); });
  expect_error("rope", "position -1", "",
               [&] { rope(tokens, cos, sin, at({-1, 0}), RopeLayout::half); });
  expect_error("rope", "positions", "(3)",
               [&] { rope(tokens, cos, sin, at({0, 1, 2}), RopeLayout::half); });
}

TEST(GroupNorm, ChannelsOfAGroupShareMeanAndVariance) {
  constexpr int64_t kChannels = 4, kSpatial = 6, kGroup = 2 * kSpatial;  // elements of a group
  const std::vector<float> values = counted(2 * kChannels * kSpatial);
  const std::vector<float> weight{1, 2, -1, 0.5f}, bias{0, 1, 0, -3};
  const Tensor x = from_host<float>(values, {2, kChannels, 2, 3}, host());
  const Tensor y = group_norm(x, 2, from_host<float>(weight, {kChannels}, host()),
                              from_host<float>(bias, {kChannels}, host()), 1e-5f);
  std::vector<float> wanted;
  wanted.reserve(values.size());
  for (size_t start = 0; start < values.size(); start += kGroup) {
    double sum = 0, squares = 0;
    for (size_t i = start; i < start + kGroup; ++i) {
      sum += values[i];
      squares += values[i] * values[i];
    }
    const double mean = sum / kGroup;
    const double scale = 1 / std::sqrt(squares / kGroup - mean * mean + 1e-5);
    for (size_t i = start; i < start + kGroup; ++i) {
      const size_t channel = i / kSpatial % kChannels;
      wanted.push_back(
          static_cast<float>((values[i] - mean) * scale * weight[channel] + bias[channel]));
    }
  }
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_THAT(y.to_host<float>(), Pointwise(::testing::FloatNear(1e-5f), wanted));
}

}  // namespace
}  // namespace rbee::harness
