// Rounding of q8_0 caches, against rbee/quant, which follows ggml, and at the ends of its range.
#include "backends/shared/kv_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "backends/shared/quant_blocks.h"
#include "rbee/quant/quant.h"

namespace rbee {
namespace {

using Group = std::array<float, shared::kPageGroup>;

shared::BlockQ8_0 rounded(const Group& x) {
  uint32_t largest = 0;
  for (const float value : x) largest = std::max(largest, shared::magnitude_bits(value));
  const shared::PageScale scale = shared::page_scale(largest);
  shared::BlockQ8_0 block{};
  block.d = scale.bits;
  for (size_t i = 0; i < x.size(); ++i) block.qs[i] = static_cast<int8_t>(scale.code(x[i]));
  return block;
}

float value_of(const shared::BlockQ8_0& block, size_t i) {
  return shared::dequantize(block, static_cast<int>(i));
}

TEST(KvPage, RoundsAsBlocksAreRounded) {
  std::mt19937 random(7);
  for (const float size : {1e-4f, 1e-3f, 1.0f, 300.0f, 1e6f}) {
    std::uniform_real_distribution<float> values(-size, size);
    for (int repeat = 0; repeat < 200; ++repeat) {
      Group x;
      for (float& value : x) value = values(random);
      shared::BlockQ8_0 wanted;
      quant::quantize_row(DType::q8_0, x.data(), &wanted, std::ssize(x));
      const shared::BlockQ8_0 got = rounded(x);
      EXPECT_EQ(got.d, wanted.d) << size;
      for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(got.qs[i], wanted.qs[i]) << x[i];
    }
  }
}

TEST(KvPage, TiesGoToEvenCodes) {
  Group x{};
  x[0] = 127;  // steps of 1
  x[1] = 2.5f;
  x[2] = 3.5f;
  x[3] = -2.5f;
  const shared::BlockQ8_0 block = rounded(x);
  EXPECT_EQ(block.qs[0], 127);
  EXPECT_EQ(block.qs[1], 2);
  EXPECT_EQ(block.qs[2], 4);
  EXPECT_EQ(block.qs[3], -2);
}

TEST(KvPage, NumbersThatNoScaleHoldsCountAsTheLimit) {
  Group x{};
  x[0] = std::numeric_limits<float>::max();
  x[1] = -x[0];
  x[2] = 65504.0f * 127;
  const shared::BlockQ8_0 block = rounded(x);
  EXPECT_EQ(value_of(block, 0), 65504.0f * 127);
  EXPECT_EQ(value_of(block, 1), -65504.0f * 127);
  EXPECT_EQ(value_of(block, 2), 65504.0f * 127);
  EXPECT_EQ(value_of(block, 3), 0);
}

TEST(KvPage, NaNAndInfinitiesMakeTheirGroupNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {std::nanf(""), -std::nanf(""), kInfinity, -kInfinity}) {
    for (const size_t at : {0, 13, 31}) {
      Group x;
      x.fill(0.5f);
      x[at] = value;
      const shared::BlockQ8_0 block = rounded(x);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(std::isnan(value_of(block, i))) << value;
    }
  }
}

TEST(KvPage, ZerosAndNumbersBelowTheLeastScaleAreZero) {
  EXPECT_EQ(rounded({}).d, 0);
  Group x{};
  x[0] = 1e-7f;
  x[1] = std::numeric_limits<float>::denorm_min();
  const shared::BlockQ8_0 block = rounded(x);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(value_of(block, i), 0);
}

TEST(KvPage, APageHoldsAsManyBytesAsItsBlocks) {
  constexpr int64_t kRows = 32, kDim = 96;
  EXPECT_EQ(shared::page_start(kRows * kDim), row_bytes(DType::q8_0, kRows * kDim));
  EXPECT_EQ(shared::page_scales(kRows, kDim, 0), kRows * kDim);
  EXPECT_EQ(shared::page_scales(kRows, kDim, kRows), shared::page_start(kRows * kDim));
}

}  // namespace
}  // namespace rbee
