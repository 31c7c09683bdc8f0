// The samplers against tools/goldens/make_sampler_goldens.py, which computes them from their
// definitions.

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/engine/text/sampling/dry.h"
#include "rbee/engine/text/sampling/sampler.h"
#include "tests/support/data_folder.h"

namespace rbee::engine {
namespace {

using nlohmann::json;
using ::testing::ElementsAreArray;
using ::testing::Pointwise;

constexpr double kTolerance = 2e-6;

MATCHER(IsClose, "") {
  return std::abs(double{std::get<0>(arg)} - double{std::get<1>(arg)}) <= kTolerance;
}

const json& goldens() {
  static const json data =
      json::parse(std::ifstream(test::data_folder() + "/units/engine/data/samplers.json"));
  return data;
}

void cut(Candidates& candidates, const std::string& sampler, float value) {
  if (sampler == "top_p") return candidates.cut_top_p(value);
  if (sampler == "min_p") return candidates.cut_min_p(value);
  if (sampler == "typical_p") return candidates.cut_typical_p(value);
  if (sampler == "top_n_sigma") return candidates.cut_top_n_sigma(value);
  ASSERT_EQ(sampler, "xtc");
  candidates.cut_xtc(value);
}

TEST(SamplerGoldens, EachCutKeepsWhatItsDefinitionSays) {
  ASSERT_GE(goldens().at("cuts").size(), 75u);
  for (const json& golden : goldens().at("cuts")) {
    const auto logits = golden.at("logits").get<std::vector<float>>();
    // From a row, and from a list that is already sorted.
    for (const bool sorted : {false, true}) {
      Candidates candidates;
      candidates.take_all(logits);
      if (sorted) candidates.take_top_k(logits, logits.size());
      cut(candidates, golden.at("sampler"), golden.at("value"));
      candidates.softmax();
      std::vector<int32_t> ids;
      std::vector<float> probabilities;
      for (const Candidate& c : candidates.list()) {
        ids.push_back(c.id);
        probabilities.push_back(c.probability);
      }
      const std::string what = golden.at("sampler").dump() + " " + golden.at("value").dump();
      EXPECT_THAT(ids, ElementsAreArray(golden.at("kept").get<std::vector<int32_t>>())) << what;
      EXPECT_THAT(probabilities,
                  Pointwise(IsClose(), golden.at("probabilities").get<std::vector<float>>()))
          << what;
    }
  }
}

TEST(SamplerGoldens, TheTemperatureFollowsTheEntropy) {
  for (const json& golden : goldens().at("temperatures")) {
    const auto logits = golden.at("logits").get<std::vector<float>>();
    const auto wanted = golden.at("probabilities").get<std::vector<double>>();
    SamplingParams params{.temperature = golden.at("temperature"), .top_k = 0, .top_p = 1};
    params.dynatemp_range = golden.at("range");
    params.dynatemp_exponent = golden.at("exponent");
    TokenSampler sampler(params, 3);
    constexpr int kDraws = 20000;
    std::vector<int> drawn(logits.size(), 0);
    for (int i = 0; i < kDraws; ++i) {
      std::vector<float> copy = logits;
      ++drawn[static_cast<size_t>(sampler.sample(copy, {}))];
    }
    for (size_t i = 0; i < logits.size(); ++i) {
      const double deviation = std::sqrt(wanted[i] * (1 - wanted[i]) / kDraws);
      EXPECT_NEAR(drawn[i] / double{kDraws}, wanted[i], 5 * deviation + 1e-4);
    }
  }
}

TEST(SamplerGoldens, MirostatCutsAndLearns) {
  for (const json& golden : goldens().at("mirostat")) {
    SamplingParams params;
    params.mirostat = golden.at("version");
    params.mirostat_tau = golden.at("tau");
    params.mirostat_eta = golden.at("eta");
    Mirostat mirostat(params);
    for (size_t i = 0; i < golden.at("steps").size(); ++i) {
      const json& step = golden.at("steps")[i];
      const auto logits = golden.at("rows")[i].get<std::vector<float>>();
      Candidates candidates;
      candidates.take_all(logits);
      mirostat.cut(candidates, std::ssize(logits));
      ASSERT_EQ(candidates.size(), step.at("kept").get<size_t>()) << golden.at("version");
      candidates.softmax();
      mirostat.learn(candidates.list()[step.at("pick").get<size_t>()]);
      EXPECT_NEAR(mirostat.mu(), step.at("mu").get<double>(), 1e-4);
    }
  }
}

TEST(SamplerGoldens, DryFindsEveryRepetition) {
  const auto pieces = goldens().at("dry").at("pieces").get<std::vector<std::string>>();
  size_t penalties = 0;
  for (const json& golden : goldens().at("dry").at("cases")) {
    SamplingParams params;
    params.dry_multiplier = golden.at("multiplier");
    params.dry_base = golden.at("base");
    params.dry_allowed_length = golden.at("allowed_length");
    params.dry_penalty_last_n = golden.at("last_n");
    params.dry_sequence_breakers = golden.at("breakers").get<std::vector<std::string>>();
    Dry dry(params);
    dry.set_piece([&](int32_t id) { return pieces.at(static_cast<size_t>(id)); });
    const auto history = golden.at("history").get<std::vector<int32_t>>();
    // The history grows as a text does.
    for (size_t length = 1; length < history.size(); ++length) {
      dry.penalties(std::span(history).first(length));
    }
    const std::vector<Dry::Penalty>& found = dry.penalties(history);
    const json& wanted = golden.at("penalties");
    ASSERT_EQ(found.size(), wanted.size()) << golden.dump();
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].id, wanted[i][0].get<int32_t>());
      EXPECT_NEAR(found[i].subtract / wanted[i][1].get<double>(), 1, 1e-5);
    }
    penalties += found.size();
  }
  EXPECT_GT(penalties, 30u);
}

}  // namespace
}  // namespace rbee::engine
