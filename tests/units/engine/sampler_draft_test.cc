// Tokens drawn with a draft model's help follow the same distribution as without it.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "rbee/engine/text/sampling/sampler.h"

namespace rbee::engine {
namespace {

constexpr size_t kVocab = 12;
constexpr int kDraws = 6000;

// Logits of a model, and of a draft model that differs from it.
float logit_of(size_t id) {
  return 2 * std::sin(1.7f * static_cast<float>(id));
}
float draft_logit_of(size_t id) {
  return logit_of(id) + 1.5f * std::cos(2.9f * static_cast<float>(id));
}

std::vector<float> row(float (*logit)(size_t)) {
  std::vector<float> out;
  for (size_t id = 0; id < kVocab; ++id) out.push_back(logit(id));
  return out;
}

// Compares two samples of equal size (Pearson's test of homogeneity), without rare tokens.
double chi_square(const std::map<int32_t, int>& a, const std::map<int32_t, int>& b) {
  double out = 0;
  for (size_t i = 0; i < kVocab; ++i) {
    const auto id = static_cast<int32_t>(i);
    const double first = a.contains(id) ? a.at(id) : 0, second = b.contains(id) ? b.at(id) : 0;
    if (first + second > 10) out += (first - second) * (first - second) / (first + second);
  }
  return out;
}

struct Settings {
  const char* name;
  SamplingParams params;
};

std::vector<Settings> settings() {
  std::vector<Settings> out;
  const auto add = [&](const char* name, auto change) {
    SamplingParams params{.temperature = 1, .top_k = 0, .top_p = 1};
    change(params);
    out.push_back({name, params});
  };
  add("all", [](SamplingParams&) {});
  add("cold", [](SamplingParams& p) { p.temperature = 0.4f; });
  add("top_k", [](SamplingParams& p) { p.top_k = 4; });
  add("top_p", [](SamplingParams& p) { p.top_p = 0.8f; });
  add("min_p", [](SamplingParams& p) { p.min_p = 0.2f; });
  add("typical", [](SamplingParams& p) { p.typical_p = 0.7f; });
  add("top_n_sigma", [](SamplingParams& p) { p.top_n_sigma = 1; });
  add("xtc", [](SamplingParams& p) {
    p.xtc_probability = 0.5f;
    p.xtc_threshold = 0.1f;
  });
  add("dynatemp", [](SamplingParams& p) { p.dynatemp_range = 0.8f; });
  add("mirostat", [](SamplingParams& p) {
    p.mirostat = 2;
    p.mirostat_tau = 2;
  });
  add("penalties", [](SamplingParams& p) {
    p.repetition_penalty = 1.5f;
    p.frequency_penalty = 0.5f;
  });
  add("dry", [](SamplingParams& p) {
    p.dry_multiplier = 2;
    p.dry_sequence_breakers.clear();
  });
  add("bias", [](SamplingParams& p) { p.samplers = {SamplerKind::temperature}; });
  return out;
}

TEST(SamplerDraft, DrawsFollowTheSamplersDistributionWhateverTheDrafts) {
  const std::vector<int32_t> history = {1, 2, 3, 1, 2};
  for (const Settings& s : settings()) {
    TokenSampler plain(s.params, 1), target(s.params, 2), draft(s.params, 3);
    draft.keep_distribution();
    for (TokenSampler* sampler : {&plain, &target, &draft}) {
      sampler->set_rules({.biases = {{4, 1.0f}, {7, -2.0f}}, .piece = {}});
    }
    std::map<int32_t, int> wanted, found;
    int accepted = 0;
    for (int i = 0; i < kDraws; ++i) {
      // Mirostat's state depends on what came; here one token at a time.
      TokenSampler again = plain;
      std::vector<float> logits = row(logit_of), drafted = row(draft_logit_of);
      ++wanted[plain.sample(logits, history)];
      if (s.params.mirostat > 0) plain.follow(again);
      draft.follow(target);
      const int32_t id = draft.sample(drafted, history);
      const DraftToken token{id, draft.drawn_among()};
      again = target;
      logits = row(logit_of);
      const int32_t chosen = target.sample(logits, history, &token);
      if (s.params.mirostat > 0) target.follow(again);
      ++found[chosen];
      accepted += chosen == id ? 1 : 0;
    }
    EXPECT_LT(chi_square(wanted, found), 31.3) << s.name;  // 11 degrees: once in a thousand
    EXPECT_GT(accepted, kDraws / 10) << s.name;
    EXPECT_LT(accepted, kDraws) << s.name;
  }
}

// Leviathan et al. 2023, corollary 3.6: one minus half the sum of the differences.
TEST(SamplerDraft, AsManyAreAcceptedAsTheDistributionsShare) {
  double p_sum = 0, q_sum = 0, shared = 0;
  for (size_t id = 0; id < kVocab; ++id) {
    p_sum += std::exp(double{logit_of(id)});
    q_sum += std::exp(double{draft_logit_of(id)});
  }
  for (size_t id = 0; id < kVocab; ++id) {
    shared += std::min(std::exp(double{logit_of(id)}) / p_sum,
                       std::exp(double{draft_logit_of(id)}) / q_sum);
  }
  const SamplingParams params{.temperature = 1, .top_k = 0, .top_p = 1};
  TokenSampler target(params, 4), draft(params, 5);
  draft.keep_distribution();
  int accepted = 0;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> drafted = row(draft_logit_of), logits = row(logit_of);
    const int32_t id = draft.sample(drafted, {});
    const DraftToken token{id, draft.drawn_among()};
    accepted += target.sample(logits, {}, &token) == id ? 1 : 0;
  }
  const double deviation = std::sqrt(shared * (1 - shared) / kDraws);
  EXPECT_NEAR(static_cast<double>(accepted) / kDraws, shared, 4 * deviation);
}

TEST(SamplerDraft, AreAllAcceptedOfTheSameDistribution) {
  const SamplingParams params{.temperature = 1, .top_k = 5, .top_p = 0.9f};
  TokenSampler target(params, 6), draft(params, 7);
  draft.keep_distribution();
  for (int i = 0; i < 500; ++i) {
    std::vector<float> drafted = row(logit_of), logits = drafted;
    const int32_t id = draft.sample(drafted, {});
    const DraftToken token{id, draft.drawn_among()};
    ASSERT_EQ(target.sample(logits, {}, &token), id);
  }
}

TEST(SamplerDraft, AreTheLikeliestTokenOrNothingAtTemperatureZero) {
  const SamplingParams params{.temperature = 0};
  TokenSampler target(params, 8), draft(params, 9);
  draft.keep_distribution();
  std::vector<float> drafted = row(draft_logit_of), logits = row(logit_of);
  const int32_t likeliest = argmax(logits);
  const DraftToken token{draft.sample(drafted, {}), draft.drawn_among()};
  EXPECT_TRUE(token.among.empty());
  EXPECT_NE(token.id, likeliest);
  EXPECT_EQ(target.sample(logits, {}, &token), likeliest);
}

// The largest softmax probability, by hand: 1 / (1 + e^-1 + e^-3).
TEST(SamplerDraft, ConfidenceIsTheLargestProbability) {
  for (const float temperature : {0.0f, 1.0f}) {
    TokenSampler sampler({.temperature = temperature, .top_k = 0, .top_p = 1}, 10);
    std::vector<float> logits = {2, 3, 0};
    sampler.sample(logits, {});
    EXPECT_NEAR(sampler.confidence(), 1 / (1 + std::exp(-1.0f) + std::exp(-3.0f)), 1e-6f);
  }
}

}  // namespace
}  // namespace rbee::engine
