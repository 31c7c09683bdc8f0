// Steps of a model that ranks of a group hold together: every rank has a Stepper that gets the same
// work. The texts and the logits are those of one rank.

#include <deque>

#include "rbee/engine/text/step/stepper.h"
#include "tests/support/rank_threads.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

constexpr int64_t kVocab = test::kTinyVocab;
constexpr StepperOptions kOptions{.cache_tokens = 256, .block_size = 4, .kv_dtype = DType::f32};

std::unique_ptr<models::LanguageModel> model_of(const char* family,
                                                const group::Membership& group) {
  const auto path =
      std::filesystem::path(test::data_folder()) / "models/language/data" / family / "model.gguf";
  return models::load_language_model(io::Checkpoint::open(path),
                                     {.device = &cpu(), .context = 64, .group = group});
}

struct StepResults {
  std::vector<int32_t> tokens;    // the likeliest, of each sequence in turn
  std::vector<float> sums, rows;  // of the last step
};

// Three sequences that begin one by one and then go on together, each with its likeliest token.
StepResults run_steps(const models::LanguageModel& model) {
  constexpr int kSteps = 8;
  Stepper stepper(model, cpu(), kOptions);
  std::deque<Sequence> sequences;
  const std::vector<float> scales(3, 0.5f);
  StepResults out;
  for (int i = 0; i < 3; ++i) {
    Sequence& sequence = sequences.emplace_back(stepper.pool());
    for (int j = 0; j <= 4 * i; ++j) sequence.tokens.push_back(10 + 7 * i + 3 * j);
    const Stepper::Work work[] = {{&sequence, sequence.length()}};
    const int32_t rows[] = {static_cast<int32_t>(sequence.length() - 1)};
    const TopLogitRows found = stepper.step(work, rows, {.count = 1, .vocab = kVocab});
    sequence.tokens.push_back(found.ids[0]);
  }
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Stepper::Work> work;
    for (Sequence& sequence : sequences) work.push_back({&sequence, 1});
    const std::vector<int32_t> rows{0, 1, 2};
    const TopLogitRows found =
        stepper.step(work, rows, {.count = 64, .vocab = kVocab, .scales = scales});
    out.sums.assign(found.sums.begin(), found.sums.end());
    for (size_t i = 0; i < 3; ++i) {
      sequences[i].tokens.push_back(found.ids[i * 64]);
      out.tokens.push_back(found.ids[i * 64]);
    }
  }
  const std::span<float> row = stepper.logit_row(1);
  out.rows.assign(row.begin(), row.end());
  return out;
}

class GroupStepsTest : public testing::TestWithParam<int> {};

TEST_P(GroupStepsTest, TokensAndLogitsOfOneRank) {
  for (const char* family : {"smollm", "qwen2", "deepseek_v3"}) {
    SCOPED_TRACE(family);
    const StepResults wanted = run_steps(*model_of(family, {}));
    const int ranks = GetParam();
    const harness::RankThreads threads(ranks);
    std::vector<StepResults> results(static_cast<size_t>(ranks));
    threads.run([&](int rank) {
      const auto model =
          model_of(family, {.share = {.rank = rank, .ranks = ranks}, .view = threads.view(rank)});
      results[static_cast<size_t>(rank)] = run_steps(*model);
    });
    for (const StepResults& found : results) {
      EXPECT_EQ(found.tokens, wanted.tokens);
      ASSERT_EQ(found.rows.size(), wanted.rows.size());
      for (size_t i = 0; i < wanted.rows.size(); ++i) {
        ASSERT_NEAR(found.rows[i], wanted.rows[i], 1e-4f) << i;
      }
      for (size_t i = 0; i < wanted.sums.size(); ++i) {
        EXPECT_NEAR(found.sums[i], wanted.sums[i], 1e-4f * wanted.sums[i]);
      }
      // Every rank has the same bits: it draws the same tokens.
      EXPECT_EQ(found.rows, results.front().rows);
      EXPECT_EQ(found.sums, results.front().sums);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, GroupStepsTest, testing::Values(2, 3));

// A rank's cache has its own heads alone.
TEST(GroupSteps, BytesOfATokenInTheCache) {
  const harness::RankThreads threads(2);
  const int64_t whole = cache_token_bytes(*model_of("llama", {}), DType::f16).all();
  int64_t sum = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const auto model =
        model_of("llama", {.share = {.rank = rank, .ranks = 2}, .view = threads.view(rank)});
    sum += cache_token_bytes(*model, DType::f16).all();
  }
  EXPECT_EQ(sum, whole);
}

}  // namespace
}  // namespace rbee::engine
