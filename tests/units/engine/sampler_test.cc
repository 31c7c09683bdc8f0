#include "rbee/engine/text/sampling/sampler.h"
#include "rbee/core/error.h"
#include "rbee/engine/text/sampling/dry.h"
#include "rbee/engine/text/sampling/mirostat.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

namespace rbee::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SamplingParams plain(float temperature) {
  return {.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0};
}

// How often each token is drawn from fixed logits.
std::map<int32_t, int> draw(const SamplingParams& params, const std::vector<float>& logits,
                            int count) {
  TokenSampler sampler(params, 7);
  std::map<int32_t, int> drawn;
  for (int i = 0; i < count; ++i) {
    std::vector<float> copy = logits;
    ++drawn[sampler.sample(copy, {})];
  }
  return drawn;
}

TEST(Argmax, TakesTheFirstOfEqualsAndSkipsNan) {
  EXPECT_EQ(argmax(std::vector<float>{kNan, 1, 3, 3, kNan}), 2);
  EXPECT_EQ(argmax(std::vector<float>{kNan, kNan}), -1);
  EXPECT_EQ(argmax(std::vector<float>{}), -1);
}

TEST(TokenSampler, IsGreedyAtTemperatureZero) {
  std::vector<float> logits = {0.1f, 2.0f, 1.9f};
  TokenSampler sampler(plain(0), 1);
  EXPECT_EQ(sampler.sample(logits, {}), 1);
}

TEST(TokenSampler, DrawsByTheSoftmaxAtTheTemperature) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    constexpr int kDraws = 40000;
    const auto drawn = draw(plain(temperature), logits, kDraws);
    double sum = 0;
    for (float logit : logits) sum += std::exp(logit / temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double expected = std::exp(logits[i] / temperature) / sum;
      const double deviation = std::sqrt(expected * (1 - expected) / kDraws);
      const auto found = drawn.find(static_cast<int32_t>(i));
      const double share = found == drawn.end() ? 0 : static_cast<double>(found->second) / kDraws;
      EXPECT_NEAR(share, expected, 5 * deviation) << "token " << i << " at " << temperature;
    }
  }
}

std::vector<int32_t> support(const SamplingParams& params, const std::vector<float>& logits) {
  std::vector<int32_t> ids;
  for (const auto& [id, count] : draw(params, logits, 4000)) ids.push_back(id);
  return ids;
}

TEST(TokenSampler, KeepsTheTopK) {
  SamplingParams params = plain(1);
  params.top_k = 2;
  EXPECT_THAT(support(params, {1.0f, 0.9f, 1.1f, 0.8f}), ElementsAre(0, 2));
  params.top_k = 100;  // above the vocabulary
  EXPECT_THAT(support(params, {1.0f, 0.9f, 1.1f}), ElementsAre(0, 1, 2));
}

TEST(TokenSampler, KeepsTheNucleusWithTheCrossingToken) {
  SamplingParams params = plain(1);
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                     std::log(0.05f)};
  params.top_p = 0.6f;
  EXPECT_THAT(support(params, logits), ElementsAre(0, 1));
  params.top_p = 0.0f;
  EXPECT_THAT(support(params, logits), ElementsAre(0));
  params.top_p = 0.97f;
  EXPECT_THAT(support(params, logits), ElementsAre(0, 1, 2, 3));
}

TEST(TokenSampler, FindsANucleusWiderThanOneSortingStep) {
  SamplingParams params = plain(1);
  params.top_p = 0.5f;
  const std::vector<float> equal(2000, 0.0f);
  // Half of the mass of equal tokens is the first thousand.
  EXPECT_EQ(support(params, equal).back() < 1001, true);
}

TEST(TokenSampler, CutsBelowMinP) {
  SamplingParams params = plain(1);
  params.min_p = 0.5f;
  EXPECT_THAT(support(params, {std::log(0.5f), std::log(0.26f), std::log(0.24f)}),
              ElementsAre(0, 1));
}

TEST(TokenSampler, PenaltiesChangeTheChoice) {
  const std::vector<int32_t> history = {1, 1, 2};
  const auto greedy = [&](SamplingParams params, std::vector<float> logits) {
    params.temperature = 0;
    return TokenSampler(params, 1).sample(logits, history);
  };
  EXPECT_EQ(greedy(plain(0), {1.0f, 1.5f, 0.5f}), 1);
  SamplingParams repetition = plain(0);
  repetition.repetition_penalty = 2.0f;
  EXPECT_EQ(greedy(repetition, {1.0f, 1.5f, 0.5f}), 0);     // 1.5 / 2 < 1
  EXPECT_EQ(greedy(repetition, {-1.0f, -0.6f, -9.0f}), 0);  // -0.6 * 2 < -1
  SamplingParams frequency = plain(0);
  frequency.frequency_penalty = 0.3f;
  EXPECT_EQ(greedy(frequency, {1.0f, 1.5f, 0.5f}), 0);  // 1.5 - 2 * 0.3 < 1
  SamplingParams presence = plain(0);
  presence.presence_penalty = 0.3f;
  EXPECT_EQ(greedy(presence, {1.0f, 1.5f, 0.5f}), 1);  // once only: 1.2 > 1
}

TEST(TokenSampler, PenaltiesLookBackNoFurtherThanAsked) {
  SamplingParams params = plain(0);
  params.repetition_penalty = 2.0f;
  params.repeat_last_n = 1;
  std::vector<float> logits = {1.0f, 1.5f};
  EXPECT_EQ(TokenSampler(params, 1).sample(logits, std::vector<int32_t>{1, 0}), 1);
  params.repeat_last_n = 0;  // the whole history
  logits = {1.0f, 1.5f};
  EXPECT_EQ(TokenSampler(params, 1).sample(logits, std::vector<int32_t>{1, 5, -3}), 0);
}

int32_t greedy_by(const SamplingParams& params, const TokenRules& rules, std::vector<float> logits,
                  const std::vector<int32_t>& history) {
  TokenSampler sampler(params, 1);
  sampler.set_rules(rules);
  return sampler.sample(logits, history);
}

// OpenAI's penalties count sampled tokens; vLLM's repetition penalty also counts the prompt's.
TEST(TokenSampler, PenaltiesOfTheAnswerAlonePassOverThePrompt) {
  const std::vector<int32_t> history = {1, 1, 1, 2, 0, 0};  // the first four are the prompt
  const TokenRules rules{
      .biases = {}, .end_tokens = {}, .bad_words = {}, .prompt_tokens = 4, .piece = {}};
  const std::vector<float> logits = {2.0f, 1.9f, 1.5f, 1.35f};
  SamplingParams presence = plain(0);
  presence.repeat_last_n = 0;
  presence.presence_penalty = 0.5f;
  EXPECT_EQ(greedy_by(presence, rules, logits, history), 0);  // 1.5, 1.4, 1.0, 1.35: as all have it
  presence.penalise_prompt = false;
  EXPECT_EQ(greedy_by(presence, rules, logits, history), 1);  // 1.5, 1.9
  SamplingParams frequency = plain(0);
  frequency.repeat_last_n = 0;
  frequency.penalise_prompt = false;
  frequency.frequency_penalty = -0.1f;
  EXPECT_EQ(greedy_by(frequency, rules, {1.0f, 1.15f}, history), 0);  // 1.2, 1.15
  frequency.repeat_last_n = 1;
  EXPECT_EQ(greedy_by(frequency, rules, {1.0f, 1.15f}, history), 1);  // 1.1, 1.15
  SamplingParams repetition = plain(0);
  repetition.repeat_last_n = 0;
  repetition.penalise_prompt = false;
  repetition.repetition_penalty = 1.5f;
  EXPECT_EQ(greedy_by(repetition, rules, logits, history), 3);  // 1.33, 1.27, 1.0, 1.35
  repetition.presence_penalty = -0.1f;
  EXPECT_EQ(greedy_by(repetition, rules, logits, history), 0);  // 1.43, 1.27, 1.0, 1.35
}
TEST(TokenSampler, BiasesAddUpAndBan) {
  const std::vector<float> logits = {1.0f, 1.5f, 0.5f};
  EXPECT_EQ(greedy_by(plain(0), {.biases = {{2, 1.5f}}}, logits, {}), 2);
  EXPECT_EQ(greedy_by(plain(0), {.biases = {{1, -1}}}, logits, {}), 0);
  EXPECT_EQ(greedy_by(plain(0), {.biases = {{2, 0.6f}, {2, 0.6f}}}, logits, {}), 2);
  EXPECT_EQ(greedy_by(plain(0), {.biases = {{1, -INFINITY}, {0, -INFINITY}}}, logits, {}), 2);
}

TEST(TokenSampler, TheEndWaitsForTheLeastLength) {
  const TokenRules rules{.end_tokens = {1}, .prompt_tokens = 2};
  const std::vector<float> logits = {1.0f, 1.5f};
  SamplingParams params = plain(0);
  params.min_tokens = 2;
  EXPECT_EQ(greedy_by(params, rules, logits, {0, 0}), 0);
  EXPECT_EQ(greedy_by(params, rules, logits, {0, 0, 0}), 0);
  EXPECT_EQ(greedy_by(params, rules, logits, {0, 0, 0, 0}), 1);
  params = plain(0);
  EXPECT_EQ(greedy_by(params, rules, logits, {0, 0}), 1);
  params.ignore_eos = true;
  EXPECT_EQ(greedy_by(params, rules, logits, {0, 0, 0, 0}), 0);
}

TEST(TokenSampler, BadWordsNeverComeWhole) {
  const TokenRules rules{.bad_words = {{1, 2}}, .prompt_tokens = 0};
  const std::vector<float> logits = {1.0f, 1.5f, 2.0f};
  EXPECT_EQ(greedy_by(plain(0), rules, logits, {0, 1}), 1);
  EXPECT_EQ(greedy_by(plain(0), rules, logits, {1, 0}), 2);
  EXPECT_EQ(greedy_by(plain(0), rules, logits, {}), 2);
}

TEST(TokenSampler, DryTurnsAwayFromARepetition) {
  SamplingParams params = plain(0);
  params.dry_multiplier = 1;
  const std::vector<float> logits = {0, 0, 0.9f, 0};
  const std::vector<int32_t> repeating = {3, 1, 2, 3, 1};
  EXPECT_EQ(greedy_by(params, {}, logits, repeating), 0);
  EXPECT_EQ(greedy_by(params, {}, logits, {3, 1, 2, 0, 1}), 2);  // one token is no repetition yet
  params.samplers = {SamplerKind::penalties};
  EXPECT_EQ(greedy_by(params, {}, logits, repeating), 2);  // off
}

// The repeated token is the breaker itself, which is allowed again.
TEST(TokenSampler, DryLeavesBreakersAlone) {
  const std::vector<std::string> pieces = {"a", "b", "\n"};
  const std::vector<int32_t> history = {0, 1, 2, 0, 1};
  const auto penalised = [&](std::vector<std::string> breakers) {
    SamplingParams params = plain(0);
    params.dry_multiplier = 1;
    params.dry_sequence_breakers = std::move(breakers);
    Dry dry(params);
    dry.set_piece([&](int32_t id) { return pieces[static_cast<size_t>(id)]; });
    std::vector<int32_t> ids;
    for (const Dry::Penalty& penalty : dry.penalties(history)) ids.push_back(penalty.id);
    return ids;
  };
  EXPECT_THAT(penalised({"c"}), ElementsAre(2));
  EXPECT_THAT(penalised({"\n"}), IsEmpty());
}

TEST(TokenSampler, TheOrderOfSamplersCounts) {
  // At temperature 2 the nucleus of 0.6 has two tokens, at 1 it has one.
  const std::vector<float> logits = {std::log(0.64f), std::log(0.32f), std::log(0.04f)};
  SamplingParams params = plain(2);
  params.top_p = 0.6f;
  EXPECT_THAT(support(params, logits), ElementsAre(0));
  params.samplers = {SamplerKind::temperature, SamplerKind::top_p};
  EXPECT_THAT(support(params, logits), ElementsAre(0, 1));
  params.samplers = {SamplerKind::temperature};
  EXPECT_THAT(support(params, logits), ElementsAre(0, 1, 2));
}

TEST(TokenSampler, XtcLeavesTheTopOutAsOftenAsAsked) {
  SamplingParams params = plain(1);
  params.xtc_probability = 0.25f;
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                     std::log(0.05f)};
  constexpr int kDraws = 20000;
  const auto drawn = draw(params, logits, kDraws);
  // With the threshold 0.1 only the last of the first three stays: 0.15 against 0.05.
  const double expected = 0.75 * 0.15 + 0.25 * 0.75;
  EXPECT_NEAR(drawn.at(2) / double{kDraws}, expected, 0.015);
  EXPECT_NEAR(drawn.at(0) / double{kDraws}, 0.75 * 0.5, 0.018);
}

TEST(TokenSampler, MirostatKeepsTheSurpriseNearItsTarget) {
  for (const int32_t version : {1, 2}) {
    SamplingParams params = plain(1);
    params.mirostat = version;
    params.mirostat_tau = 3;
    std::vector<float> logits(500);
    for (size_t i = 0; i < logits.size(); ++i) {
      logits[i] = -1.1f * std::log(static_cast<float>(i + 1));  // Zipf's law
    }
    TokenSampler sampler(params, 5);
    std::map<int32_t, int> drawn;
    constexpr int kDraws = 4000;
    for (int i = 0; i < kDraws; ++i) {
      std::vector<float> copy = logits;
      ++drawn[sampler.sample(copy, {})];
    }
    // The entropy of the draws; without Mirostat it is above 6 bits.
    double bits = 0;
    for (const auto& [id, count] : drawn) {
      bits -= count / double{kDraws} * std::log2(count / double{kDraws});
    }
    EXPECT_NEAR(bits, 3, 0.5) << version;
  }
}

// A flat row and a small target: the paper's k is 0.004.
TEST(TokenSampler, MirostatLeavesOneTokenAtLeast) {
  SamplingParams params = plain(1);
  params.mirostat = 1;
  params.mirostat_tau = 0.1f;
  std::vector<float> logits(100);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = -0.5f * std::log(static_cast<float>(i + 1));
  }
  Candidates candidates;
  candidates.take_all(logits);
  Mirostat(params).cut(candidates, std::ssize(logits));
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates.list().front().id, 0);
}

TEST(TokenSampler, RepeatsItselfForASeed) {
  const auto sequence = [](uint64_t seed) {
    TokenSampler sampler(plain(1), seed);
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i) {
      std::vector<float> logits(100, 0.0f);
      ids.push_back(sampler.sample(logits, {}));
    }
    return ids;
  };
  EXPECT_EQ(sequence(3), sequence(3));
  EXPECT_NE(sequence(3), sequence(4));
}

TEST(TokenSampler, BansGiveWayWhereTheyLeaveNothing) {
  SamplingParams params = plain(0);
  params.min_tokens = 9;
  const uint64_t bits[] = {0b1010};  // 1 and 3 are allowed
  for (const bool both : {true, false}) {
    TokenSampler sampler(params, 1);
    TokenRules rules;
    rules.end_tokens = {3};
    if (both) rules.bad_words = {{1}};
    sampler.set_rules(rules);
    sampler.allow({bits, 2});
    std::vector<float> logits = {9, 2, 8, 5};
    EXPECT_EQ(sampler.sample(logits, {}), both ? 3 : 1);
  }
}

TEST(TokenSampler, NeverChoosesNanAndFailsWhenNothingIsFinite) {
  EXPECT_THAT(support(plain(1), {kNan, 0.0f, kNan, 0.0f}), ElementsAre(1, 3));
  std::vector<float> hopeless = {kNan, -std::numeric_limits<float>::infinity()};
  EXPECT_THROW(TokenSampler(plain(1), 1).sample(hopeless, {}), Error);
}

}  // namespace
}  // namespace rbee::engine
