#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/shared/quant_blocks.h"
#include "rbee/core/error.h"
#include "rbee/quant/quant.h"
#include "tests/support/block_types.h"
#include "tests/units/quant/samples.h"

namespace rbee::quant {
namespace {

class DequantizeTest : public testing::TestWithParam<DType> {};

// Compares bit for bit, NaN with NaN, from blocks at an unaligned address.
TEST_P(DequantizeTest, MatchesGolden) {
  const std::string type = name(GetParam());
  auto blocks = read_golden<char>(type + ".blocks");
  const auto expected = read_golden<float>(type + ".values");
  const auto n = static_cast<int64_t>(expected.size());
  ASSERT_EQ(row_bytes(GetParam(), n), static_cast<int64_t>(blocks.size()));
  blocks.insert(blocks.begin(), 0);
  std::vector<float> actual(expected.size());
  dequantize_row(GetParam(), blocks.data() + 1, actual.data(), n);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(actual[i])) << "element " << i;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << "element " << i << ": " << actual[i] << " for " << expected[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DequantizeTest,
                         testing::ValuesIn(test::block_types_but({DType::f8_g128})),
                         [](const auto& types) { return std::string(name(types.param)); });

// The value of a code by the OCP specification: S EEEE MMM, bias 7; no NaN in a block.
float value_of_e4m3(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const int units = exponent == 0 ? mantissa : 8 + mantissa;
  const float size = std::ldexp(static_cast<float>(units), std::max(exponent, 1) - 10);
  return code < 128 ? size : -size;
}

TEST(F8G128Test, EveryCodeTimesTheScale) {
  for (const float scale : {1.0f, 0.0123f, 0x1p-130f}) {
    shared::BlockF8_G128 blocks[2];
    float values[256];
    for (int code = 0; code < 256; ++code) {
      blocks[code / 128].d = scale;
      blocks[code / 128].qs[code % 128] = static_cast<uint8_t>(code);
    }
    dequantize_row(DType::f8_g128, blocks, values, 256);
    for (int code = 0; code < 256; ++code) {
      EXPECT_EQ(values[code], scale * value_of_e4m3(code)) << "code " << code;
    }
  }
}

TEST(F8G128Test, ACheckpointsNaNIsTheGroups) {
  shared::BlockF8_G128 block{};
  block.d = NAN;
  float values[128];
  dequantize_row(DType::f8_g128, &block, values, 128);
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
}

// The largest becomes 448; between 2^k and 2^(k + 1) codes are 2^(k - 3) apart.
TEST(F8G128Test, RoundsToTheNearestCode) {
  auto in = weight_samples(128);
  in[100] = -0.75f;
  shared::BlockF8_G128 block;
  float out[128];
  quantize_row(DType::f8_g128, in.data(), &block, 128);
  dequantize_row(DType::f8_g128, &block, out, 128);
  EXPECT_FLOAT_EQ(block.d, 0.75f / 448);
  EXPECT_EQ(block.qs[100], 0xfe);
  for (size_t i = 0; i < 128; ++i) {
    const float most = std::max(std::fabs(in[i]) / 16, block.d * 0x1p-10f) * 1.0001f;
    EXPECT_NEAR(out[i], in[i], most) << i;
  }
}

TEST(QuantArgumentsTest, RefusesPlainTypesAndPartialBlocks) {
  char blocks[292] = {};
  float values[256] = {};
  EXPECT_THROW(dequantize_row(DType::f32, blocks, values, 32), Error);
  EXPECT_THROW(quantize_row(DType::bf16, values, blocks, 32), Error);
  EXPECT_THROW(dequantize_row(DType::q4_k, blocks, values, 32), Error);
  EXPECT_THROW(quantize_row(DType::q4_0, values, blocks, 33), Error);
  EXPECT_THROW(quantize_row(DType::q4_0, values, blocks, -32), Error);
}

TEST(QuantArgumentsTest, TakesEmptyRows) {
  for (const DType type : test::block_types()) {
    EXPECT_NO_THROW(dequantize_row(type, nullptr, nullptr, 0));
    EXPECT_NO_THROW(quantize_row(type, nullptr, nullptr, 0));
  }
}

}  // namespace
}  // namespace rbee::quant
