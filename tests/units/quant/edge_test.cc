// Values unlike weights: NaN, infinities, extremes of float, blocks of one value.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "rbee/quant/quant.h"
#include "tests/support/block_types.h"
#include "tests/units/quant/samples.h"

namespace rbee::quant {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMost = std::numeric_limits<float>::max();
constexpr size_t kElements = 256;

using Row = std::vector<float>;

class QuantEdgeTest : public testing::TestWithParam<DType> {
 protected:
  static std::vector<uint8_t> encode(const Row& in, const float* importance = nullptr) {
    std::vector<uint8_t> blocks(static_cast<size_t>(row_bytes(GetParam(), kElements)));
    quantize_row(GetParam(), in.data(), blocks.data(), kElements, importance);
    return blocks;
  }
  static Row decode(const std::vector<uint8_t>& blocks) {
    Row out(kElements);
    dequantize_row(GetParam(), blocks.data(), out.data(), kElements);
    return out;
  }
  // Of the type's largest magnitude, by the contract of quantize_row.
  static float limit() {
    switch (GetParam()) {
      case DType::q4_0:
        return 65504.0f * 8;
      case DType::q5_0:
        return 65504.0f * 16;
      case DType::q8_0:
        return 65504.0f * 127;
      case DType::q8_k:
      case DType::mxfp4:
      case DType::f8_g128:
        return 0x1p127f;
      case DType::nvfp4:
        return 448.0f * 6;
      default:
        return 65504.0f;
    }
  }
  // Whether few values lie between zero and a block's largest.
  static bool is_coarse() { return has_few_bits(GetParam()); }
};

TEST_P(QuantEdgeTest, NaNIsZero) {
  Row in = weight_samples(kElements);
  Row clean = in;
  for (size_t i = 3; i < kElements; i += 11) {
    in[i] = i % 2 == 0 ? kNaN : -kNaN;
    clean[i] = 0;
  }
  EXPECT_EQ(encode(in), encode(clean));
}

TEST_P(QuantEdgeTest, InfinityIsTheLimit) {
  Row in = weight_samples(kElements);
  Row clean = in;
  in[7] = kInfinity;
  in[130] = -kInfinity;
  clean[7] = limit();
  clean[130] = -limit();
  EXPECT_EQ(encode(in), encode(clean));
  const Row out = decode(encode(in));
  // Of an IQ2 group with one value, the others are not less than 8/43 of it.
  const double tolerance = is_coarse() ? 0.6 : 0.2;
  EXPECT_NEAR(out[7] / limit(), 1.0, tolerance);
  EXPECT_NEAR(out[130] / limit(), -1.0, tolerance);
}

TEST_P(QuantEdgeTest, AnyInputDecodesToFiniteValues) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<Row> rows = {
      Row(kElements, kMost),     Row(kElements, -kMost), Row(kElements, kInfinity),
      Row(kElements, kNaN),      Row(kElements, tiny),   Row(kElements, -tiny),
      Row(kElements, 0x1p-126f), Row(kElements, 6e-8f),  Row(kElements, -1e-7f)};
  const float cycle[] = {kMost, -kMost, kInfinity, -kInfinity, kNaN,
                         tiny,  0.0f,   -0.0f,     1.0f,       -6e-8f};
  Row mixed;
  for (size_t i = 0; i < kElements; ++i) mixed.push_back(cycle[i % 10]);
  Row ramp;
  for (size_t i = 0; i < kElements; ++i) {
    ramp.push_back(std::ldexp(i % 2 == 0 ? 1.5f : -1.5f, static_cast<int>(i) - 135));
  }
  std::vector<Row> all = rows;
  all.push_back(mixed);
  all.push_back(ramp);
  for (const Row& in : all) {
    for (const float* importance :
         {static_cast<const float*>(nullptr), std::as_const(mixed).data()}) {
      for (const float x : decode(encode(in, importance))) ASSERT_TRUE(std::isfinite(x)) << in[0];
    }
  }
}

TEST_P(QuantEdgeTest, ZerosStayZero) {
  EXPECT_EQ(decode(encode(Row(kElements))), Row(kElements));
}

TEST_P(QuantEdgeTest, ConstantsKeepTheirValue) {
  for (const float value : {0.3f, -0.3f, 1000.0f, -1e-3f}) {
    // With the mxfp4 specification's scale, values just below a power of two are out of range.
    const float part = GetParam() == DType::mxfp4 || is_coarse() ? 0.25f : 0.02f;
    const float tolerance = part * std::fabs(value);
    for (const float x : decode(encode(Row(kElements, value)))) ASSERT_NEAR(x, value, tolerance);
  }
}

TEST_P(QuantEdgeTest, ImportanceThatIsNotAWeightIsIgnored) {
  const Row in = weight_samples(kElements);
  const Row ones(kElements, 1.0f);
  for (const float bad : {0.0f, -1.0f, kNaN, kInfinity}) {
    EXPECT_EQ(encode(in, Row(kElements, bad).data()), encode(in, ones.data())) << bad;
  }
  Row some = ones;
  some[9] = kNaN;
  Row none = ones;
  none[9] = 0;
  EXPECT_EQ(encode(in, some.data()), encode(in, none.data()));
}

INSTANTIATE_TEST_SUITE_P(Types, QuantEdgeTest, testing::ValuesIn(test::block_types()),
                         [](const auto& types) { return std::string(name(types.param)); });

}  // namespace
}  // namespace rbee::quant
