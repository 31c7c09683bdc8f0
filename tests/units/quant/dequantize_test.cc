#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/quant/quant.h"
#include "tests/units/quant/samples.h"

namespace rbee::quant {
namespace {

class DequantizeTest : public testing::TestWithParam<DType> {};

// Bit for bit, NaN for NaN, from blocks at an address without any alignment.
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

INSTANTIATE_TEST_SUITE_P(Types, DequantizeTest, testing::ValuesIn(block_types()),
                         [](const auto& types) { return std::string(name(types.param)); });

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
  for (const DType type : block_types()) {
    EXPECT_NO_THROW(dequantize_row(type, nullptr, nullptr, 0));
    EXPECT_NO_THROW(quantize_row(type, nullptr, nullptr, 0));
  }
}

}  // namespace
}  // namespace rbee::quant
