// The tokens that a sampler predicts a device to draw, compared with its own draws.

#include <algorithm>
#include <random>

#include "rbee/engine/text/sampling/sampler.h"
#include "rbee/engine/text/step/next_step.h"
#include "rbee/ops/decode.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

constexpr int64_t kVocab = 3000;

SamplingParams params_of(float temperature, int32_t top_k, float top_p, float min_p) {
  SamplingParams out;
  out.temperature = temperature;
  out.top_k = top_k;
  out.top_p = top_p;
  out.min_p = min_p;
  return out;
}

// Draws from a row's top logits as a device does.
int32_t draw_on_device(const Tensor& logits, const TopK& top_logits, const DeviceDraws& draws,
                       int32_t turn) {
  const Tensor drawn = empty({1}, DType::i32, cpu());
  std::vector<int32_t> stages;
  for (const DrawStage stage : draws.stages) stages.push_back(static_cast<int32_t>(stage));
  const int32_t turns[] = {turn};
  std::vector<int32_t> banned(kDrawBans, -1);
  std::ranges::copy(draws.banned, banned.begin());
  draw_(drawn, logits, top_logits,
        {.stages = from_host<int32_t>(stages, {1, kDrawStages}, cpu()),
         .amounts = from_host<float>(draws.amounts, {1, kDrawStages}, cpu()),
         .banned = from_host<int32_t>(banned, {1, kDrawBans}, cpu()),
         .numbers = from_host<float>(draws.numbers, {1, std::ssize(draws.numbers)}, cpu())},
        from_host<int32_t>(turns, {1}, cpu()));
  return *drawn.data<int32_t>();
}

TEST(DeviceDraws, WhatIsDrawn) {
  const SamplingParams defaults;
  SamplingParams warm = params_of(0.7f, 0, 0.9f, 0);
  warm.samplers = {SamplerKind::temperature, SamplerKind::top_k, SamplerKind::top_p,
                   SamplerKind::min_p};
  SamplingParams warm_top_k = warm;
  warm_top_k.top_k = 20;
  SamplingParams bans = params_of(1, 0, 1, 0);
  bans.ignore_eos = true;
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 3);
  for (const SamplingParams& params :
       {defaults, warm, warm_top_k, bans, params_of(1, 0, 1, 0), params_of(0.5f, 0, 1, 0),
        params_of(1.2f, 200, 1, 0), params_of(1, 0, 0.8f, 0), params_of(1, 0, 0.8f, 0.1f),
        params_of(1, 0, 1, 0.05f), params_of(0, 40, 0.9f, 0)}) {
    TokenSampler sampler(params, 3);
    sampler.set_rules({.biases = {}, .end_tokens = {2999}, .bad_words = {}});
    ASSERT_TRUE(sampler.can_draw_on_device(kVocab));
    std::array<float, kDeviceDraws> numbers{};
    DeviceDraws draws{.banned = {}, .numbers = numbers};
    sampler.describe_draws(draws);
    int undecided = 0;
    for (int32_t turn = 0; turn < kDeviceDraws; ++turn) {
      std::vector<float> row(kVocab);
      for (float& x : row) x = normal(random);
      row.back() = 8;  // a likely token, which may be banned
      const Tensor logits = from_host<float>(row, {1, kVocab}, cpu());
      const float scales[] = {sampler.scale()};
      const TopK top_logits =
          top_k(logits, kDrawnTopLogits, RowSum::wanted, from_host<float>(scales, {1}, cpu()));
      const int32_t foreseen = draw_on_device(logits, top_logits, draws, turn);
      TokenSampler whole = sampler;
      const TopLogits few{.values = {top_logits.values.data<float>(), kDrawnTopLogits},
                          .ids = {top_logits.ids.data<int32_t>(), kDrawnTopLogits},
                          .sum = *top_logits.sum.data<float>(),
                          .vocab = kVocab};
      TopLogits drawn = few;
      drawn.drawn = {.id = foreseen, .number = numbers[static_cast<size_t>(turn)]};
      undecided += TokenSampler(sampler).sample(few, {}) ? 0 : 1;
      const std::optional<int32_t> chosen = sampler.sample(drawn, {});
      EXPECT_EQ(foreseen, chosen.value_or(-1)) << params.temperature << ", turn " << turn;
      EXPECT_EQ(foreseen, whole.sample(row, {})) << params.temperature << ", turn " << turn;
    }
    // Of uncut rows only some, whose draw the device can decide.
    const bool cuts = params.top_k > 0 || params.top_p < 1 || params.min_p > 0;
    EXPECT_EQ(undecided > 0, !cuts && params.temperature >= 1) << params.temperature;
  }
}

// If the number is not the device's, or it does not know a change, the host reads the row.
TEST(DeviceDraws, WhatWasDrawnOtherwiseIsNotTaken) {
  const std::vector<float> flat(kVocab, 1);
  const Tensor logits = from_host<float>(flat, {1, kVocab}, cpu());
  const TopK top_logits = top_k(logits, kDrawnTopLogits, RowSum::wanted);
  SamplingParams params = params_of(1, 0, 1, 0);
  params.ignore_eos = true;
  TokenSampler sampler(params, 7);
  sampler.set_rules({.biases = {}, .end_tokens = {2}, .bad_words = {{5, 6}}});
  std::array<float, 1> numbers{};
  DeviceDraws draws{.banned = {}, .numbers = numbers};
  sampler.describe_draws(draws);
  TopLogits found{.values = {top_logits.values.data<float>(), kDrawnTopLogits},
                  .ids = {top_logits.ids.data<int32_t>(), kDrawnTopLogits},
                  .sum = *top_logits.sum.data<float>(),
                  .vocab = kVocab};
  ASSERT_FALSE(TokenSampler(sampler).sample(found, {}));
  found.drawn = {.id = 1234, .number = numbers[0]};
  EXPECT_EQ(TokenSampler(sampler).sample(found, {}), 1234);
  const std::vector<int32_t> before_a_ban{5};
  EXPECT_FALSE(TokenSampler(sampler).sample(found, before_a_ban));
  found.drawn->number = numbers[0] / 2;
  EXPECT_FALSE(TokenSampler(sampler).sample(found, {}));
}

TEST(DeviceDraws, NothingWhereTheHostKnowsMore) {
  const auto can_draw_on_device = [](const SamplingParams& params) {
    return TokenSampler(params, 1).can_draw_on_device(kVocab);
  };
  const auto with = [](auto change) {
    SamplingParams out;
    change(out);
    return out;
  };
  EXPECT_TRUE(can_draw_on_device({}));
  EXPECT_TRUE(can_draw_on_device(with([](auto& p) { p.top_k = 256; })));
  EXPECT_FALSE(can_draw_on_device(with([](auto& p) { p.top_k = 257; })));
  EXPECT_FALSE(can_draw_on_device(with([](auto& p) { p.repetition_penalty = 1.1f; })));
  EXPECT_FALSE(can_draw_on_device(with([](auto& p) { p.dry_multiplier = 0.8f; })));
  EXPECT_FALSE(can_draw_on_device(with([](auto& p) { p.typical_p = 0.9f; })));
  EXPECT_FALSE(can_draw_on_device(with([](auto& p) { p.top_n_sigma = 1; })));
  EXPECT_FALSE(can_draw_on_device(with([](auto& p) { p.xtc_probability = 0.5f; })));
  EXPECT_FALSE(can_draw_on_device(with([](auto& p) { p.dynatemp_range = 0.5f; })));
  EXPECT_FALSE(can_draw_on_device(with([](auto& p) { p.mirostat = 2; })));
  TokenSampler kept({}, 1);
  kept.keep_distribution();
  EXPECT_FALSE(kept.can_draw_on_device(kVocab));
  TokenSampler masked({}, 1);
  const std::vector<uint64_t> bits(kVocab / 64 + 1, 1);
  masked.allow({.bits = bits, .count = kVocab / 64});
  EXPECT_FALSE(masked.can_draw_on_device(kVocab));
}

}  // namespace
}  // namespace rbee::engine
