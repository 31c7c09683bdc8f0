// Draft tokens change the number of steps and nothing else.

#include <gmock/gmock.h>

#include "rbee/engine/text/draft/ngram_draft.h"
#include "tests/units/engine/speculating.h"

namespace rbee::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NgramDraft, IsWhatFollowedTheLongestEndThatCameBefore) {
  const auto draft = [](std::vector<int32_t> history, int64_t most) {
    return ngram_draft(history, most);
  };
  EXPECT_THAT(draft({1, 2, 3, 4, 1, 2}, 8), ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(draft({1, 2, 3, 4, 1, 2}, 1), ElementsAre(3));
  EXPECT_THAT(draft({1, 2, 3, 9, 1, 2, 4, 9, 1, 2}, 1), ElementsAre(4));     // the latest
  EXPECT_THAT(draft({7, 1, 2, 3, 9, 1, 2, 4, 7, 1, 2}, 1), ElementsAre(3));  // the longest
  EXPECT_THAT(draft({5, 5, 5}, 4), ElementsAre(5));                          // overlapping
  EXPECT_THAT(draft({1, 2, 3, 4, 2}, 4), IsEmpty());                         // one token only
  EXPECT_THAT(draft({1, 2, 1, 2}, 0), IsEmpty());
  EXPECT_THAT(draft({}, 4), IsEmpty());
}

TEST(DraftLength, FollowsWhatComes) {
  DraftLength length(8);
  EXPECT_EQ(length.next(), 8);
  length.learn(8, 2);
  EXPECT_EQ(length.next(), 3);
  length.learn(3, 3);
  EXPECT_EQ(length.next(), 6);
  length.learn(6, 6);
  EXPECT_EQ(length.next(), 8);
  length.learn(8, 0);
  EXPECT_EQ(length.next(), 0);  // for one token
  EXPECT_EQ(length.next(), 1);
  length.learn(1, 0);
  EXPECT_EQ(length.next(), 0);  // for two
  EXPECT_EQ(length.next(), 0);
  EXPECT_EQ(length.next(), 1);
  length.learn(1, 1);
  EXPECT_EQ(length.next(), 2);
}

TEST(Speculative, GreedyTextsAreTheSame) {
  const auto without = make_llm_engine(tiny_model(128), plain());
  const auto with = make_llm_engine(tiny_model(128), speculating());
  for (const std::string& prompt : kPrompts) {
    const auto wanted = answer(*without, repetitive(prompt, 60)),
               found = answer(*with, repetitive(prompt, 60));
    EXPECT_EQ(found->text, wanted->text) << prompt;
    EXPECT_EQ(found->finished->tokens_out, wanted->finished->tokens_out);
    EXPECT_TRUE(found->indices_follow);
  }
  const EngineStats stats = with->stats();
  EXPECT_EQ(stats.generated_tokens, without->stats().generated_tokens);
  EXPECT_GT(stats.drafts, 0u);
  EXPECT_GT(stats.accepted_tokens, stats.drafts / 2);
  EXPECT_LE(stats.accepted_tokens, stats.draft_tokens);
  EXPECT_EQ(without->stats().drafts, 0u);
  EXPECT_EQ(stats.kv_blocks_used, 0);
}

TextRequest sampled(const std::string& prompt, uint64_t seed, int32_t tokens) {
  TextRequest request = greedy(prompt, tokens);
  request.sampling = {.temperature = 0.8f, .top_k = 5, .top_p = 0.95f, .seed = seed};
  request.sampling.dry_multiplier = 0.01f;  // state that grows with the text
  return request;
}

TEST(Speculative, ASeedGivesTheSameText) {
  const auto without = make_llm_engine(tiny_model(128), plain());
  const auto with = make_llm_engine(tiny_model(128), speculating());
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const TextRequest request = sampled(kPrompts[seed % kPrompts.size()], seed, 50);
    EXPECT_EQ(answer(*with, request)->text, answer(*without, request)->text) << seed;
  }
  EXPECT_GT(with->stats().accepted_tokens, 0u);
  EXPECT_LT(with->stats().accepted_tokens, with->stats().draft_tokens);  // some were wrong
}

// The room for draft tokens depends on the order of arrivals; the texts do not.
TEST(Speculative, ASeedGivesTheSameTextBesideOthersAndInTurns) {
  const auto without = make_llm_engine(tiny_model(128), plain());
  // Blocks for three of the requests: some are preempted in between.
  LlmOptions tight = speculating();
  tight.cache_tokens = 160;
  const auto with = make_llm_engine(tiny_model(128), tight);
  std::vector<std::string> wanted;
  std::vector<std::shared_ptr<Recorder>> found;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const TextRequest request = sampled(kPrompts[seed % kPrompts.size()], seed, 50);
    wanted.push_back(answer(*without, request)->text);
    found.push_back(submit(*with, request, cat("job-", seed)));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    found[i]->wait();
    EXPECT_EQ(found[i]->text, wanted[i]) << i;
  }
}

TEST(Speculative, StopsAndLogprobsAreThoseOfEachToken) {
  const auto without = make_llm_engine(tiny_model(128), plain());
  const auto with = make_llm_engine(tiny_model(128), speculating());
  TextRequest request = repetitive(kPrompts[0], 40);
  request.logprobs = 2;
  const auto wanted = answer(*without, request), found = answer(*with, request);
  ASSERT_EQ(found->tokens.size(), wanted->tokens.size());
  for (size_t i = 0; i < found->tokens.size(); ++i) {
    EXPECT_EQ(found->tokens[i].chosen.id, wanted->tokens[i].chosen.id);
    EXPECT_NEAR(found->tokens[i].chosen.logprob, wanted->tokens[i].chosen.logprob, 1e-4);
  }
  for (const int32_t tokens : {1, 2, 7, 23}) {
    request.max_tokens = tokens;
    EXPECT_EQ(answer(*with, request)->text, answer(*without, request)->text);
  }
  request.max_tokens = 40;
  request.stop = {wanted->text.substr(wanted->text.size() / 2, 3)};
  EXPECT_EQ(answer(*with, request)->text, answer(*without, request)->text);
}

TEST(Speculative, ARequestSaysWhetherToDraft) {
  const auto on = make_llm_engine(tiny_model(128), speculating());
  TextRequest request = repetitive(kPrompts[0], 30);
  request.speculative = false;
  answer(*on, request);
  EXPECT_EQ(on->stats().drafts, 0u);
  const auto off = make_llm_engine(tiny_model(128), plain());
  request.speculative = true;
  answer(*off, request);
  EXPECT_GT(off->stats().drafts, 0u);
  LlmOptions options = plain();
  options.draft_tokens = 65;
  EXPECT_THROW(make_llm_engine(tiny_model(), options), Error);
}

TEST(Speculative, DrawsFollowTheModelsDistribution) {
  const auto engine = make_llm_engine(tiny_model(128), speculating());
  EXPECT_LT(chi_square_of_draws(*engine), 24.3);  // exceeded once in a thousand
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.accepted_tokens, 100u);
  EXPECT_GT(stats.draft_tokens - stats.accepted_tokens, 100u);
}

}  // namespace
}  // namespace rbee::engine
