// Philox against the known answers of Random123 (Salmon et al. 2011, kat_vectors), and what users
// of random tensors rely on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/shared/philox.h"
#include "rbee/ops/random.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

using ::testing::ElementsAre;

Device& cpu() {
  return *all_devices().front();
}

TEST(Philox, KnownAnswers) {
  EXPECT_THAT(shared::philox4x32_10({{0, 0, 0, 0}}, 0, 0).words,
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(shared::philox4x32_10({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u).words,
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(shared::philox4x32_10({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822,
                                    0x299f31d0)
                  .words,
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

// Tensors made one after another with growing offsets are one stream.
TEST(Random, OffsetContinuesAStream) {
  const std::vector<float> whole =
      random_normal({50}, DType::f32, cpu(), {.seed = 3, .offset = 100}).to_host<float>();
  const std::vector<float> rest =
      random_normal({20}, DType::f32, cpu(), {.seed = 3, .offset = 130}).to_host<float>();
  EXPECT_EQ(std::vector<float>(whole.begin() + 30, whole.end()), rest);
  EXPECT_NE(whole,
            random_normal({50}, DType::f32, cpu(), {.seed = 4, .offset = 100}).to_host<float>());
}

TEST(Random, UniformStaysBelowTheEnd) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3}) {
    const Tensor x = random_uniform({1 << 16}, dtype, cpu(), {.seed = 1, .low = 2.0, .high = 2.5});
    double sum = 0;
    for (const double value : read_values(x).values) {
      ASSERT_GE(value, 2.0) << name(dtype);
      ASSERT_LT(value, 2.5) << name(dtype);
      sum += value;
    }
    // A number rounded up to the end becomes the start: at most half a step is lost.
    const double step = dtype == DType::f8e4m3 ? 0x1p-2 : dtype == DType::bf16 ? 0x1p-6 : 0x1p-9;
    const double slack = step * 0.75 + 0.005;
    EXPECT_NEAR(sum / (1 << 16), 2.25, slack) << name(dtype);
  }
}

// Moments and symmetry of a large sample; bounds are about five standard errors.
TEST(Random, NormalHasTheMomentsOfANormal) {
  constexpr int kCount = 1 << 20;
  const Tensor x = random_normal({kCount}, DType::f32, cpu(), {.seed = 9, .mean = 0, .stddev = 2});
  double moments[5] = {};
  for (const double value : read_values(x).values) {
    for (int i = 1; i <= 4; ++i) moments[i] += std::pow(value / 2, i) / kCount;
  }
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.007);
  EXPECT_NEAR(moments[3], 0, 0.02);
  EXPECT_NEAR(moments[4], 3, 0.05);
}

// Neighbouring counters must not be correlated.
TEST(Random, NeighboursAreIndependent) {
  constexpr int kCount = 1 << 18;
  const HostArray x = read_values(random_normal({kCount}, DType::f32, cpu(), {.seed = 2}));
  for (const int lag : {1, 2, 4, 32}) {
    double sum = 0;
    for (int i = lag; i < kCount; ++i) sum += x[i] * x[i - lag];
    EXPECT_NEAR(sum / kCount, 0, 0.01) << "lag " << lag;
  }
}

}  // namespace
}  // namespace rbee::harness
