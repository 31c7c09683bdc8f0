#include <gtest/gtest.h>

#include <cmath>

#include "backends/shared/quant_blocks.h"
#include "rbee/quant/quant.h"
#include "tests/units/quant/samples.h"

namespace rbee::quant {
namespace {

class ReferenceTest : public testing::TestWithParam<DType> {};

TEST_P(ReferenceTest, EncodesTheBytesOfGgml) {
  const auto input = read_golden<float>("input");
  const auto expected = read_golden<uint8_t>(std::string(name(GetParam())) + ".encoded");
  std::vector<uint8_t> actual(expected.size());
  quantize_row(GetParam(), input.data(), actual.data(), static_cast<int64_t>(input.size()));
  const auto block_bytes = static_cast<size_t>(info(GetParam()).block_bytes);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i], expected[i])
        << "byte " << i % block_bytes << " of block " << i / block_bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ReferenceTest,
                         testing::Values(DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                                         DType::q8_0, DType::mxfp4),
                         [](const auto& types) { return std::string(name(types.param)); });

TEST(Q8KTest, RoundsToTheNearestWithTheExtremeAtMinus127) {
  auto input = weight_samples(256);
  input[100] = 0.75f;
  shared::BlockQ8_K block;
  quantize_row(DType::q8_k, input.data(), &block, 256);
  EXPECT_FLOAT_EQ(block.d, -0.75f / 127);
  EXPECT_EQ(block.qs[100], -127);
  for (size_t i = 0; i < 256; ++i) {
    EXPECT_NEAR(block.d * block.qs[i], input[i], 0.5001f * std::fabs(block.d)) << i;
  }
}

TEST(Q8KTest, SumsSixteens) {
  const auto input = weight_samples(256);
  shared::BlockQ8_K block;
  quantize_row(DType::q8_k, input.data(), &block, 256);
  for (int group = 0; group < 16; ++group) {
    int total = 0;
    for (int i = 0; i < 16; ++i) total += block.qs[16 * group + i];
    EXPECT_EQ(block.bsums[group], total) << group;
  }
}

}  // namespace
}  // namespace rbee::quant
