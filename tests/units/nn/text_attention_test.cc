#include "rbee/nn/text_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/checkpoints/checkpoint_files.h"

namespace rbee::test {
namespace {

using testing::FloatNear;
using testing::Pointwise;

constexpr int64_t kHeads = 2, kHeadDim = 3, kWidth = kHeads * kHeadDim;

// Softmax of scaled products, text by text, in double.
std::vector<float> expected(const std::vector<float>& q, const std::vector<float>& k,
                            const std::vector<float>& v, const std::vector<int64_t>& lengths) {
  std::vector<float> out;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    for (int64_t i = first; i < first + length; ++i) {
      for (int64_t at = 0; at < kWidth; ++at) {
        const int64_t head = at / kHeadDim * kHeadDim;
        double total = 0, mixed = 0;
        for (int64_t j = first; j < first + length; ++j) {
          double score = 0;
          for (int64_t d = head; d < head + kHeadDim; ++d) {
            score += double{q[static_cast<size_t>(i * kWidth + d)]} *
                     double{k[static_cast<size_t>(j * kWidth + d)]};
          }
          const double weight = std::exp(score / std::sqrt(double{kHeadDim}));
          total += weight;
          mixed += weight * double{v[static_cast<size_t>(j * kWidth + at)]};
        }
        out.push_back(static_cast<float>(mixed / total));
      }
    }
    first += length;
  }
  return out;
}

TEST(TextAttention, EachTextSeesAllOfItselfAlone) {
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{1}, {5}, {3, 3}, {4, 2, 2, 7}, {1, 1, 6, 1}}) {
    int64_t tokens = 0;
    for (const int64_t length : lengths) tokens += length;
    const auto count = static_cast<size_t>(tokens * kWidth);
    const auto q = random_values(count, 1), k = random_values(count, 2),
               v = random_values(count, 3);
    const Shape shape{tokens, kHeads, kHeadDim};
    const Tensor y = nn::text_attention(device_tensor(q, shape), device_tensor(k, shape),
                                        device_tensor(v, shape), nn::text_runs(lengths));
    EXPECT_EQ(y.shape(), (Shape{tokens, kWidth}));
    EXPECT_THAT(y.to_host<float>(), Pointwise(FloatNear(1e-5f), expected(q, k, v, lengths)));
  }
}

TEST(TextAttention, NeighboursOfOneLengthAreOneRun) {
  const std::vector<int64_t> lengths{4, 4, 2, 4};
  const auto runs = nn::text_runs(lengths);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].texts, 2);
  EXPECT_EQ(runs[1].first_text, 2);
  EXPECT_EQ(runs[1].first_token, 8);
  EXPECT_EQ(runs[2].first_token, 10);
  EXPECT_EQ(runs[2].length, 4);
}

}  // namespace
}  // namespace rbee::test
