// Rounding of q8_0 caches, against rbee/quant, which follows ggml, and at the ends of its range.
#include "backends/shared/kv_page.h"

#include <gtest/gtest.h>

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
  float largest = 0;
  for (const float value : x) largest = shared::larger_magnitude(largest, value);
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
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Group x{};
  x[0] = kInfinity;
  x[1] = -kInfinity;
  x[2] = std::nanf("");
  x[3] = 65504.0f * 127;
  const shared::BlockQ8_0 block = rounded(x);
  EXPECT_EQ(value_of(block, 0), 65504.0f * 127);
  EXPECT_EQ(value_of(block, 1), -65504.0f * 127);
  EXPECT_EQ(value_of(block, 2), 0);
  EXPECT_EQ(value_of(block, 3), 65504.0f * 127);
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
