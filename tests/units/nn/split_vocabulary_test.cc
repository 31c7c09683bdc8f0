// The largest logits of a vocabulary whose ranges are on the ranks of a group, and whole rows,
// against those of one rank.

#include "rbee/nn/split_vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/rank_threads.h"

namespace rbee::test {
namespace {

struct VocabularyCase {
  int64_t tokens;
  std::vector<double> parts;
};

class SplitVocabularyTest : public testing::TestWithParam<VocabularyCase> {
 protected:
  int ranks() const { return static_cast<int>(GetParam().parts.size()); }
  nn::SplitVocabulary of_rank(int rank) const {
    return {GetParam().tokens,
            {.share = {.rank = rank, .ranks = ranks(), .parts = GetParam().parts},
             .view = threads_.view(rank)}};
  }
  // Rows with equal logits on several ranks.
  Tensor logits() const {
    std::vector<float> values(static_cast<size_t>(kRows * GetParam().tokens));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((i * i + 7 * i) % 113) / 8;
    }
    return device_tensor(values, {kRows, GetParam().tokens});
  }
  Tensor own_logits(const nn::SplitVocabulary& vocabulary) const {
    return logits().slice(Axis{1}, vocabulary.own().first, vocabulary.own().count);
  }

  static TopK room(int64_t k) {
    return {.values = empty({kRows, k}, DType::f32, cpu_device()),
            .ids = empty({kRows, k}, DType::i32, cpu_device()),
            .sum = empty({kRows}, DType::f32, cpu_device())};
  }
  // Compares what every rank finds among the first `tokens` with what one rank finds.
  void expect_top(int64_t k, int64_t tokens, const Tensor& scale) const {
    const TopK wanted = top_k(logits().slice(Axis{1}, 0, tokens), k, RowSum::wanted, scale);
    threads_.run([&](int rank) {
      const nn::SplitVocabulary vocabulary = of_rank(rank);
      const TopK found = room(k);
      vocabulary.first(tokens).top_k_(found, own_logits(vocabulary), scale);
      EXPECT_EQ(found.values.to_host<float>(), wanted.values.to_host<float>());
      EXPECT_EQ(found.ids.to_host<int32_t>(), wanted.ids.to_host<int32_t>());
      const std::vector<float> sums = found.sum.to_host<float>();
      const std::vector<float> exact = wanted.sum.to_host<float>();
      for (size_t row = 0; row < sums.size(); ++row) {
        EXPECT_NEAR(sums[row], exact[row], 1e-5f * exact[row]);
      }
    });
  }

  static constexpr int64_t kRows = 3;
  harness::RankThreads threads_{ranks()};
};

TEST_P(SplitVocabularyTest, RangesCoverIt) {
  int64_t at = 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    EXPECT_EQ(of_rank(0).range(rank).first, at);
    EXPECT_EQ(of_rank(0).range(rank), of_rank(rank).own());
    at = of_rank(0).range(rank).end();
  }
  EXPECT_EQ(at, GetParam().tokens);
}

TEST_P(SplitVocabularyTest, LargestOfAllRanks) {
  const int64_t tokens = GetParam().tokens;
  for (const int64_t k : {int64_t{1}, int64_t{5}, tokens - 2}) {
    SCOPED_TRACE(k);
    expect_top(k, tokens, {});
    expect_top(k, tokens - 2, device_tensor(std::vector<float>{0.5f, 1.0f, 2.0f}, {kRows}));
  }
}

// Tokens beyond a few, all of the first rank, are padding.
TEST_P(SplitVocabularyTest, LargestOfTheFirstTokens) {
  expect_top(3, 4, {});
}

TEST_P(SplitVocabularyTest, WithoutSums) {
  threads_.run([&](int rank) {
    const nn::SplitVocabulary vocabulary = of_rank(rank);
    TopK found = room(1);
    found.sum = {};
    vocabulary.top_k_(found, own_logits(vocabulary));
    EXPECT_EQ(found.ids.to_host<int32_t>(), top_k(logits(), 1).ids.to_host<int32_t>());
  });
}

TEST_P(SplitVocabularyTest, WholeRows) {
  threads_.run([&](int rank) {
    const nn::SplitVocabulary vocabulary = of_rank(rank);
    const Tensor rows = vocabulary.gather(own_logits(vocabulary));
    EXPECT_EQ(rows.to_host<float>(), logits().to_host<float>());
  });
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, SplitVocabularyTest,
                         testing::Values(VocabularyCase{96, {1}}, VocabularyCase{256, {1, 1}},
                                         VocabularyCase{97, {1, 1, 1}}, VocabularyCase{300, {3, 1}},
                                         VocabularyCase{128, {0, 1, 1}}));

}  // namespace
}  // namespace rbee::test
