#include "rbee/engine/sampler.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

namespace rbee::engine {
namespace {

using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SamplingParams plain(float temperature) {
  return {.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0};
}

// How often each token is drawn from fixed logits.
std::map<int32_t, int> draw(const SamplingParams& params, const std::vector<float>& logits,
                            int count) {
  Sampler sampler(params, 7);
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

TEST(Sampler, IsGreedyAtTemperatureZero) {
  std::vector<float> logits = {0.1f, 2.0f, 1.9f};
  Sampler sampler(plain(0), 1);
  EXPECT_EQ(sampler.sample(logits, {}), 1);
}

TEST(Sampler, DrawsByTheSoftmaxAtTheTemperature) {
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

TEST(Sampler, KeepsTheTopK) {
  SamplingParams params = plain(1);
  params.top_k = 2;
  EXPECT_THAT(support(params, {1.0f, 0.9f, 1.1f, 0.8f}), ElementsAre(0, 2));
  params.top_k = 100;  // above the vocabulary
  EXPECT_THAT(support(params, {1.0f, 0.9f, 1.1f}), ElementsAre(0, 1, 2));
}

TEST(Sampler, KeepsTheNucleusWithTheCrossingToken) {
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

TEST(Sampler, FindsANucleusWiderThanOneSortingStep) {
  SamplingParams params = plain(1);
  params.top_p = 0.5f;
  const std::vector<float> equal(2000, 0.0f);
  // Half of the mass of equal tokens: the first thousand.
  EXPECT_EQ(support(params, equal).back() < 1001, true);
}

TEST(Sampler, CutsBelowMinP) {
  SamplingParams params = plain(1);
  params.min_p = 0.5f;
  EXPECT_THAT(support(params, {std::log(0.5f), std::log(0.26f), std::log(0.24f)}),
              ElementsAre(0, 1));
}

TEST(Sampler, PenaltiesChangeTheChoice) {
  const std::vector<int32_t> history = {1, 1, 2};
  const auto greedy = [&](SamplingParams params, std::vector<float> logits) {
    params.temperature = 0;
    return Sampler(params, 1).sample(logits, history);
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

TEST(Sampler, PenaltiesLookBackNoFurtherThanAsked) {
  SamplingParams params = plain(0);
  params.repetition_penalty = 2.0f;
  params.repeat_last_n = 1;
  std::vector<float> logits = {1.0f, 1.5f};
  EXPECT_EQ(Sampler(params, 1).sample(logits, std::vector<int32_t>{1, 0}), 1);
  params.repeat_last_n = 0;  // the whole history
  logits = {1.0f, 1.5f};
  EXPECT_EQ(Sampler(params, 1).sample(logits, std::vector<int32_t>{1, 5, -3}), 0);
}

TEST(Sampler, RepeatsItselfForASeed) {
  const auto sequence = [](uint64_t seed) {
    Sampler sampler(plain(1), seed);
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

TEST(Sampler, NeverChoosesNanAndFailsWhenNothingIsFinite) {
  EXPECT_THAT(support(plain(1), {kNan, 0.0f, kNan, 0.0f}), ElementsAre(1, 3));
  std::vector<float> hopeless = {kNan, -std::numeric_limits<float>::infinity()};
  EXPECT_THROW(Sampler(plain(1), 1).sample(hopeless, {}), Error);
}

}  // namespace
}  // namespace rbee::engine
