// Sampling from a row's largest logits: every option gives the tokens of the whole row.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "rbee/core/error.h"
#include "rbee/engine/text/sampling/sampler.h"

namespace rbee::engine {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Top logits with the arrays they point to.
struct Found {
  std::vector<float> values;
  std::vector<int32_t> ids;
  TopLogits top_logits;
};

Found find_top_logits(const std::vector<float>& row, size_t count, float scale) {
  std::vector<float> numbers = row;
  for (float& x : numbers) x = std::isnan(x) ? kLowest : x;
  Found out;
  out.ids.resize(row.size());
  std::iota(out.ids.begin(), out.ids.end(), 0);
  std::ranges::stable_sort(out.ids, std::greater<>(),
                           [&](int32_t id) { return numbers[static_cast<size_t>(id)]; });
  const double top = numbers[static_cast<size_t>(out.ids[0])];
  double sum = 0;
  for (const float x : numbers) sum += std::exp(scale * (double{x} - top));
  out.ids.resize(count);
  for (const int32_t id : out.ids) out.values.push_back(numbers[static_cast<size_t>(id)]);
  out.top_logits = {.values = out.values,
                    .ids = out.ids,
                    .sum = static_cast<float>(sum),
                    .vocab = static_cast<int64_t>(row.size())};
  return out;
}

// Logits of a steep distribution with ties, like most models' rows.
std::vector<float> some_logits(size_t vocab, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> out(vocab);
  for (float& x : out) x = std::round(normal(random) * 32) / 32;
  return out;
}

struct Tally {
  int same = 0;
  int undecided = 0;
};

// Draws a text of `steps` tokens twice: from whole rows, and from their top logits if these
// decide.
Tally draw_twice(const SamplingParams& params, size_t vocab, size_t count, int steps,
                 const TokenRules& rules = {}) {
  TokenSampler whole(params, 11), few(params, 11);
  whole.set_rules(rules);
  few.set_rules(rules);
  std::mt19937 random(5);
  std::vector<int32_t> history{1, 2, 3, 2};
  Tally tally;
  for (int i = 0; i < steps; ++i) {
    std::vector<float> row = some_logits(vocab, random);
    if (i % 3 == 0) row[static_cast<size_t>(i) % vocab] = std::nanf("");
    const Found found = find_top_logits(row, count, few.scale());
    std::optional<int32_t> id = few.sample(found.top_logits, history);
    tally.undecided += !id;
    if (!id) {
      std::vector<float> copy = row;
      id = few.sample(copy, history);
    }
    const int32_t wanted = whole.sample(row, history);
    tally.same += *id == wanted;
    history.push_back(wanted);
  }
  return tally;
}

TEST(SamplerTopLogits, GiveTheTokensOfTheWholeRow) {
  constexpr int kSteps = 25;
  int options = 0, undecided = 0;
  for (const float temperature : {0.0f, 0.4f, 1.0f, 2.0f}) {
    for (const int32_t top_k : {0, 1, 40, 900}) {
      for (const float top_p : {1.0f, 0.9f, 0.3f, 0.0f}) {
        for (const float min_p : {0.0f, 0.05f}) {
          for (const float penalty : {1.0f, 1.3f, 0.8f}) {
            for (const float presence : {0.0f, 0.5f, -0.5f}) {
              const SamplingParams params{.temperature = temperature,
                                          .top_k = top_k,
                                          .top_p = top_p,
                                          .min_p = min_p,
                                          .repetition_penalty = penalty,
                                          .frequency_penalty = presence / 4,
                                          .presence_penalty = presence,
                                          .repeat_last_n = 16,
                                          .seed = {}};
              const Tally tally = draw_twice(params, 600, 128, kSteps);
              ASSERT_EQ(tally.same, kSteps)
                  << "temperature " << temperature << " top_k " << top_k << " top_p " << top_p
                  << " min_p " << min_p << " penalties " << penalty << ' ' << presence;
              ++options;
              undecided += tally.undecided == kSteps;
            }
          }
        }
      }
    }
  }
  // A draw at high temperature without cuts may need the row; nearly nothing else does.
  EXPECT_LT(undecided, options / 20);
}

SamplingParams options(float temperature, int32_t top_k, float top_p, float min_p) {
  return {.temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = min_p};
}

// Every later sampler, biases that raise and lower, bans, and both places of the temperature.
TEST(SamplerTopLogits, GiveTheTokensOfTheWholeRowWithEverySampler) {
  constexpr int kSteps = 20;
  std::mt19937 random(9);
  const auto pick = [&](std::vector<float> list) { return list[random() % list.size()]; };
  constexpr int kOptions = 100;
  int undecided = 0;
  for (int i = 0; i < kOptions; ++i) {
    SamplingParams params = options(pick({0.0f, 0.5f, 1.0f, 1.7f}), i % 3 == 0 ? 0 : 30,
                                    pick({1.0f, 0.9f, 0.5f}), pick({0.0f, 0.02f}));
    params.typical_p = pick({1.0f, 0.8f});
    params.xtc_probability = pick({0.0f, 0.5f});
    params.dynatemp_range = pick({0.0f, 0.3f});
    params.dry_multiplier = pick({0.0f, 2.0f});
    params.presence_penalty = pick({0.0f, 0.7f, -0.7f});
    params.min_tokens = 10;
    if (i % 2 == 0) std::ranges::reverse(params.samplers);
    if (i % 2 == 0) std::ranges::rotate(params.samplers, params.samplers.end() - 2);
    ASSERT_NO_THROW(validate(params));
    const TokenRules rules{
        .biases = {{7, 4.0f}, {11, -3.0f}, {90, -INFINITY}, {7, 1.0f}, {9999, 5.0f}},
        .end_tokens = {5, 300},
        .bad_words = {{4}, {1, 2}},
        .prompt_tokens = 4,
        .piece = {}};
    const Tally tally = draw_twice(params, 400, 128, kSteps, rules);
    ASSERT_EQ(tally.same, kSteps) << "options " << i;
    undecided += tally.undecided;
  }
  EXPECT_LT(undecided, kOptions * kSteps * 4 / 5);
}

TEST(SamplerTopLogits, NearlyAlwaysDecide) {
  SamplingParams penalised = options(0.8f, 40, 0.95f, 0);
  penalised.repetition_penalty = 1.1f;
  penalised.presence_penalty = 0.5f;
  SamplingParams greedy = options(0, 0, 1, 0);
  EXPECT_EQ(draw_twice(options(0.8f, 40, 0.95f, 0), 5000, 64, 200).undecided, 0);
  EXPECT_EQ(draw_twice(greedy, 5000, 1, 200).undecided, 0);
  EXPECT_EQ(draw_twice(penalised, 5000, 128, 200).undecided, 0);
  EXPECT_LE(draw_twice(options(1, 0, 0.9f, 0), 5000, 1024, 200).undecided, 10);
  EXPECT_LE(draw_twice(options(1, 0, 1, 0.1f), 5000, 1024, 200).undecided, 4);
  // Nothing cuts: 256 of these rows have 0.84 of the mass, and at half the temperature all.
  EXPECT_LE(draw_twice(options(1, 0, 1, 0), 5000, 256, 200).undecided, 60);
  EXPECT_LE(draw_twice(options(0.5f, 0, 1, 0), 5000, 256, 200).undecided, 4);
}

TEST(SamplerTopLogits, AreAllThereIsOfAShortRow) {
  for (const auto& params : {options(1, 0, 0.5f, 0), options(1, 0, 1, 0.001f)}) {
    const Tally tally = draw_twice(params, 50, 50, 200);
    EXPECT_EQ(tally.same, 200);
    EXPECT_LE(tally.undecided, 4);
  }
}

// Every `stride`-th token, from the first on.
std::vector<uint64_t> every_nth(size_t vocab, size_t stride) {
  std::vector<uint64_t> bits((vocab + 63) / 64);
  for (size_t i = 0; i < vocab; i += stride) bits[i / 64] |= uint64_t{1} << (i % 64);
  return bits;
}

TEST(SamplerTopLogits, DecideUnderAMaskAsTheRowDoes) {
  constexpr size_t kVocab = 600;
  constexpr int kSteps = 40;
  int decided = 0;
  SamplingParams penalised = options(0.8f, 0, 0.9f, 0.02f);
  penalised.repetition_penalty = 1.2f;
  for (const SamplingParams& params :
       {options(0, 0, 1, 0), options(1, 5, 1, 0), options(1, 40, 0.9f, 0), options(1, 0, 0.7f, 0),
        options(1, 0, 1, 0.05f), options(2, 0, 0.95f, 0.01f), penalised}) {
    for (const size_t stride : {1, 2, 7, 50, 300, 599}) {
      const std::vector<uint64_t> bits = every_nth(kVocab, stride);
      const TokenMask mask{bits, static_cast<int64_t>((kVocab + stride - 1) / stride)};
      TokenSampler whole(params, 7), few(params, 7);
      whole.allow(mask);
      few.allow(mask);
      std::mt19937 random(9);
      std::vector<int32_t> history{7, 14, 300, 7};
      for (int i = 0; i < kSteps; ++i) {
        std::vector<float> row = some_logits(kVocab, random);
        const Found found = find_top_logits(row, 200, few.scale());
        std::optional<int32_t> id = few.sample(found.top_logits, history);
        decided += id.has_value();
        std::vector<float> copy = row;
        if (!id) id = few.sample(copy, history);
        ASSERT_EQ(*id % static_cast<int32_t>(stride), 0);
        ASSERT_EQ(*id, whole.sample(row, history)) << "stride " << stride << " step " << i;
        history.push_back(*id);
      }
    }
  }
  EXPECT_GT(decided, 7 * 6 * kSteps / 3);
}

TEST(SamplerTopLogits, UnderAMaskMoreOfThemAreWanted) {
  const std::vector<uint64_t> bits = every_nth(9000, 2);
  TokenSampler sampler(options(0, 0, 1, 0), 1);
  sampler.allow({bits, 4500});
  EXPECT_GT(sampler.wanted(9000).top_logits, 64);
  EXPECT_EQ(sampler.wanted(50).top_logits, 50);
}

// A device sums a row in f32; if its error could change the nucleus, the row itself is needed.
TEST(SamplerTopLogits, DoNotDecideWithinTheErrorOfTheSum) {
  const std::vector<float> values{0, std::log(0.5f), -3};
  const std::vector<int32_t> ids{0, 1, 2};
  const auto decides = [&](float off) {
    TokenSampler sampler(options(1, 0, 0.75f, 0), 1);
    const TopLogits top_logits{.values = values, .ids = ids, .sum = 2 * (1 - off), .vocab = 100};
    return sampler.sample(top_logits, {}).has_value();
  };
  EXPECT_FALSE(decides(3e-6f));
  EXPECT_TRUE(decides(2e-5f));
}

// Draws with this top-p from the `top_logits` largest logits of a row, or from the row if these do
// not decide; that may happen `most_undecided` times.
void expect_distribution(float top_p, size_t top_logits, int most_undecided) {
  std::mt19937 random(3);
  const std::vector<float> row = some_logits(3000, random);
  const Found whole = find_top_logits(row, row.size(), 1),
              found = find_top_logits(row, top_logits, 1);
  // The nucleus by the definition.
  std::map<int32_t, double> expected;
  double mass = 0;
  for (size_t i = 0; i < whole.ids.size() && mass < double{top_p}; ++i) {
    const double p = std::exp(double{whole.values[i]} - whole.values[0]) / whole.top_logits.sum;
    expected[whole.ids[i]] = p;
    mass += p;
  }
  constexpr int kDraws = 20000;
  int undecided = 0;
  TokenSampler sampler(options(1, 0, top_p, 0), 1);
  std::map<int32_t, int> drawn;
  for (int i = 0; i < kDraws; ++i) {
    std::optional<int32_t> id = sampler.sample(found.top_logits, {});
    undecided += !id;
    std::vector<float> copy = row;
    ++drawn[id ? *id : sampler.sample(copy, {})];
  }
  EXPECT_LT(undecided, most_undecided);
  const auto expect_share = [](double found, double share, const std::string& what) {
    const double deviation = std::sqrt(share * (1 - share) / kDraws);
    EXPECT_NEAR(found / kDraws, share, 5 * deviation + 1e-9) << what;
  };
  double rare = 0, rare_drawn = 0;  // too rare to be compared one by one
  for (const auto& [id, p] : expected) {
    if (p < 1e-3 * mass) {
      rare += p / mass;
      rare_drawn += drawn[id];
    } else {
      expect_share(drawn[id], p / mass, "token " + std::to_string(id));
    }
  }
  expect_share(rare_drawn, rare, "rare tokens");
  for (const auto& [id, count] : drawn) EXPECT_TRUE(expected.contains(id)) << "token " << id;
}

TEST(SamplerTopLogits, FollowTheDistribution) {
  expect_distribution(0.8f, 1024, 40);
}

// 64 of 3000 decide at least half of the draws; the others must not shift the distribution.
TEST(SamplerTopLogits, FollowTheDistributionWhereNothingCuts) {
  expect_distribution(1, 64, 20000 / 2);
}

// For a draft model: its distribution is needed afterwards.
TEST(SamplerTopLogits, DoNotDecideWhereTheDistributionIsKept) {
  std::mt19937 random(3);
  std::vector<float> row = some_logits(500, random);
  const Found found = find_top_logits(row, 256, 1);
  TokenSampler sampler(options(1, 0, 1, 0), 1);
  EXPECT_TRUE(TokenSampler(sampler).sample(found.top_logits, {}));
  const DraftToken draft{3, {{3, 0.5f}, {4, 0.5f}}};
  EXPECT_FALSE(TokenSampler(sampler).sample(found.top_logits, {}, &draft));
  sampler.keep_distribution();
  EXPECT_EQ(sampler.wanted(500).top_logits, 0);
  EXPECT_FALSE(sampler.sample(found.top_logits, {}));
  sampler.sample(row, {});
  EXPECT_EQ(sampler.drawn_among().size(), row.size());
}

TEST(SamplerTopLogits, SayWhatTheyNeed) {
  const auto wanted = [](const SamplingParams& params) {
    return TokenSampler(params, 1).wanted(9000);
  };
  EXPECT_EQ(wanted(options(0, 0, 1, 0)).top_logits, 1);
  EXPECT_EQ(wanted(options(1, 40, 0.9f, 0.1f)).top_logits, 40);
  EXPECT_FALSE(wanted(options(1, 40, 0.9f, 0)).sum);
  EXPECT_EQ(wanted(options(1, 0, 0.9f, 0)).top_logits, 256);
  EXPECT_TRUE(wanted(options(1, 0, 0.9f, 0)).sum);
  EXPECT_EQ(wanted(options(1, 0, 1, 0)).top_logits, 256);  // any token may be drawn
  EXPECT_TRUE(wanted(options(1, 0, 1, 0)).sum);
  EXPECT_EQ(wanted(options(1, 2000, 1, 0)).top_logits, 0);  // more than the operation finds
  SamplingParams raising = options(0, 0, 1, 0);
  raising.presence_penalty = -1;
  EXPECT_EQ(wanted(raising).top_logits, 65);
  SamplingParams lowering = options(0, 0, 1, 0);
  lowering.repetition_penalty = 1.1f;
  EXPECT_EQ(wanted(lowering).top_logits, 65);
  EXPECT_EQ(TokenSampler(lowering, 1).wanted(20).top_logits, 20);
}

// If 256 do not hold a nucleus, more are requested for a while.
TEST(SamplerTopLogits, AreManyForAWhileWhereFewDidNotDecide) {
  constexpr size_t kTokens = 3000;
  const std::vector<float> flat(kTokens, 1);
  std::vector<float> steep(kTokens, 0);
  steep[7] = 50;
  for (const SamplingParams& params : {options(1, 0, 0.9f, 0), options(1, 0, 1, 0.1f)}) {
    TokenSampler sampler(params, 1);
    const auto draw = [&](const std::vector<float>& row) {
      const TokenSampler::Wanted wanted = sampler.wanted(kTokens);
      const Found found =
          find_top_logits(row, static_cast<size_t>(wanted.top_logits), sampler.scale());
      std::vector<float> copy = row;
      if (!sampler.sample(found.top_logits, {})) sampler.sample(copy, {});
      return wanted.top_logits;
    };
    EXPECT_EQ(draw(steep), 256);
    EXPECT_TRUE(sampler.can_draw_on_device(kTokens));
    EXPECT_EQ(draw(flat), 256);
    EXPECT_FALSE(sampler.can_draw_on_device(kTokens));
    for (int i = 0; i < 32; ++i) EXPECT_EQ(draw(steep), 1024) << i;
    EXPECT_EQ(draw(steep), 256);
    EXPECT_TRUE(sampler.can_draw_on_device(kTokens));
  }
}

// More than the most likely token is read only if that token is banned.
TEST(SamplerTopLogits, TheLikeliestWillDoUntilItIsBanned) {
  SamplingParams params = options(0, 0, 1, 0);
  params.ignore_eos = true;
  TokenSampler sampler(params, 1);
  sampler.set_rules({.biases = {{5, -3.0f}}, .end_tokens = {2, 3}, .bad_words = {{7, 8}}});
  const std::vector<int32_t> history{6, 7};
  const auto top_logit = [&](int32_t id) {
    const std::vector<float> values{4};
    const std::vector<int32_t> ids{id};
    return TokenSampler(sampler).sample({.values = values, .ids = ids, .vocab = 9000}, history);
  };
  EXPECT_EQ(sampler.wanted(9000).top_logits, 1);
  EXPECT_EQ(top_logit(1), 1);
  for (const int32_t banned : {2, 3, 5, 8}) EXPECT_EQ(top_logit(banned), std::nullopt) << banned;
  const std::vector<float> values{4};
  const std::vector<int32_t> ids{3};
  EXPECT_FALSE(sampler.sample({.values = values, .ids = ids, .vocab = 9000}, history));
  EXPECT_EQ(sampler.wanted(9000).top_logits, 5);

  TokenSampler raises(params, 1);
  raises.set_rules({.biases = {{5, 0.5f}}, .end_tokens = {2}, .bad_words = {}});
  EXPECT_EQ(raises.wanted(9000).top_logits, 3);
}

TEST(SamplerTopLogits, DecideNothingWhenNothingIsFinite) {
  const std::vector<float> hopeless(20, std::nanf(""));
  const Found found = find_top_logits(hopeless, 5, 1);
  EXPECT_FALSE(TokenSampler(options(1, 3, 1, 0), 1).sample(found.top_logits, {}));
}

}  // namespace
}  // namespace rbee::engine
