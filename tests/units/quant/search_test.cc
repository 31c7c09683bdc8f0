#include <gtest/gtest.h>

#include "rbee/quant/quant.h"
#include "tests/units/quant/samples.h"

namespace rbee::quant {
namespace {

constexpr int64_t kRow = 256;
constexpr int64_t kRows = 256;

// Encodes and decodes; importance (kRow values) applies to every row.
std::vector<float> round_trip(DType type, const std::vector<float>& in,
                              const float* importance = nullptr) {
  std::vector<uint8_t> blocks(static_cast<size_t>(row_bytes(type, kRow)));
  std::vector<float> out(in.size());
  for (size_t at = 0; at < in.size(); at += kRow) {
    quantize_row(type, in.data() + at, blocks.data(), kRow, importance);
    dequantize_row(type, blocks.data(), out.data() + at, kRow);
  }
  return out;
}

struct Quality {
  DType type;
  // rms, of ggml's own encoder on the same samples: 0.27, for types of few bits that of
  // llama-cpp-python 0.3.36 with equal importance
  double ggml_error;
};

class SearchQualityTest : public testing::TestWithParam<Quality> {};

TEST_P(SearchQualityTest, IsNoWorseThanGgml) {
  const auto in = weight_samples(kRow * kRows);
  EXPECT_LE(rms_error(round_trip(GetParam().type, in), in), GetParam().ggml_error);
}

INSTANTIATE_TEST_SUITE_P(
    Types, SearchQualityTest,
    testing::Values(Quality{DType::q2_k, 8.584e-3}, Quality{DType::q3_k, 4.497e-3},
                    Quality{DType::q4_k, 2.099e-3}, Quality{DType::q5_k, 1.065e-3},
                    Quality{DType::q6_k, 5.453e-4}, Quality{DType::iq4_nl, 2.301e-3},
                    Quality{DType::iq4_xs, 2.332e-3}, Quality{DType::iq1_s, 1.4788e-2},
                    Quality{DType::iq1_m, 1.3161e-2}, Quality{DType::iq2_xxs, 1.0391e-2},
                    Quality{DType::iq2_xs, 8.864e-3}, Quality{DType::iq2_s, 7.572e-3},
                    Quality{DType::iq3_xxs, 5.383e-3}, Quality{DType::iq3_s, 4.134e-3},
                    Quality{DType::tq1_0, 2.351e-2}, Quality{DType::tq2_0, 2.351e-2},
                    Quality{DType::nvfp4, 2.748e-3}),
    [](const auto& types) { return std::string(name(types.param.type)); });

class SearchTest : public testing::TestWithParam<DType> {};

// If some block holds the values exactly, the search nearly finds it: the error is small compared
// with that of values in between.
TEST_P(SearchTest, KeepsWhatItOnceMade) {
  const auto in = weight_samples(kRow * 16);
  const auto once = round_trip(GetParam(), in);
  const auto twice = round_trip(GetParam(), once);
  EXPECT_LE(rms_error(twice, once), 0.2 * rms_error(once, in));
}

// Weights that differ by 1000 must lower the weighted error, at the cost of the plain one.
TEST_P(SearchTest, ImportanceMovesTheError) {
  const auto in = weight_samples(kRow * 32);
  std::vector<float> importance(in.size());
  for (size_t i = 0; i < in.size(); ++i) importance[i] = i % 5 == 0 ? 100.0f : 0.1f;
  const auto plain = round_trip(GetParam(), in);
  std::vector<float> weighted;
  for (size_t at = 0; at < in.size(); at += kRow) {
    const std::vector<float> row(in.begin() + static_cast<int64_t>(at),
                                 in.begin() + static_cast<int64_t>(at) + kRow);
    const auto out = round_trip(GetParam(), row, importance.data() + at);
    weighted.insert(weighted.end(), out.begin(), out.end());
  }
  // Ternary types have only one number to move for 256 values.
  const bool ternary = GetParam() == DType::tq1_0 || GetParam() == DType::tq2_0;
  EXPECT_LT(rms_error(weighted, in, importance.data()),
            (ternary ? 0.98 : 0.9) * rms_error(plain, in, importance.data()));
  EXPECT_GT(rms_error(weighted, in), rms_error(plain, in));
}

TEST_P(SearchTest, EqualImportanceIsTheSameForAnyUnit) {
  const auto in = weight_samples(kRow * 4);
  const std::vector<float> ones(kRow, 1.0f);
  const std::vector<float> tiny(kRow, 1e-20f);
  EXPECT_EQ(round_trip(GetParam(), in, ones.data()), round_trip(GetParam(), in, tiny.data()));
}

// For values a thousandth of usual weights, these types' half scales keep few bits, or none if the
// integers beside them were at their largest.
TEST(SearchSmallTest, SmallBlocksKeepTheirPrecision) {
  const auto usual = weight_samples(kRow * 4);
  for (const DType type : {DType::q3_k, DType::q6_k, DType::iq4_xs}) {
    auto small = usual;
    for (float& x : small) x *= 1e-3f;
    EXPECT_LT(rms_error(round_trip(type, small), small),
              1.5e-3 * rms_error(round_trip(type, usual), usual))
        << name(type);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SearchTest,
                         testing::Values(DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                                         DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k,
                                         DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::iq1_s,
                                         DType::iq1_m, DType::iq2_xxs, DType::iq2_xs, DType::iq2_s,
                                         DType::iq3_xxs, DType::iq3_s, DType::tq1_0, DType::tq2_0,
                                         DType::nvfp4),
                         [](const auto& types) { return std::string(name(types.param)); });

// Given importance, types with ggml's reference rounding are searched, too: less error for the same
// weights.
TEST(SearchLegacyTest, EqualImportanceBeatsTheReference) {
  const auto in = weight_samples(kRow * 32);
  const std::vector<float> ones(kRow, 1.0f);
  for (const DType type : {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::mxfp4}) {
    EXPECT_LT(rms_error(round_trip(type, in, ones.data()), in), rms_error(round_trip(type, in), in))
        << name(type);
  }
}

}  // namespace
}  // namespace rbee::quant
