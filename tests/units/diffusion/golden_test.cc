// Samplers against diffusers' schedulers or, if diffusers has none, against their formulas in
// float64 (tools/goldens/make_diffusion_goldens.py).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/diffusion/adaptive.h"
#include "rbee/diffusion/random.h"
#include "rbee/diffusion/samplers.h"
#include "rbee/io/json_parse.h"
#include "tests/support/data_folder.h"

namespace rbee::diffusion {
namespace {

using nlohmann::json;
using Latent = std::vector<double>;

constexpr size_t kCount = 64;

json cases() {
  const std::ifstream file(test::data_folder() + "/units/diffusion/data/samplers.json");
  std::stringstream text;
  text << file.rdbuf();
  return io::parse_json(text.str(), "samplers.json");
}

Latent normals(Normals& source, double scale) {
  std::vector<float> drawn(kCount);
  source.fill(drawn);
  Latent out(drawn.begin(), drawn.end());
  for (double& value : out) value *= scale;
  return out;
}

// The goldens' made-up model, in its parametrisation.
Latent denoised(const NoiseModel& noise, const Latent& x, const Instruction& at, double factor) {
  const Scaling scaling = noise.scaling(at.sigma);
  Latent out(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const double output = std::tanh(0.6 * scaling.in * x[i]) + 0.1 * std::sin(at.time / 150);
    out[i] = scaling.skip * x[i] + scaling.out * factor * output;
  }
  return out;
}

struct Interpreter {
  const NoiseModel& noise;
  Normals& source;
  double guidance;  // 1 = none; the unguided half is 0.9 of the model
  std::vector<Latent> registers = {};
  int32_t calls = 0;

  Latent& at(Register r) { return registers[static_cast<size_t>(r)]; }

  void run(const Instruction& instruction) {
    if (instruction.kind == Instruction::Kind::draw) {
      at(instruction.target) = normals(source, 1);
    } else if (instruction.kind == Instruction::Kind::evaluate) {
      evaluate(instruction);
    } else {
      Latent sum(kCount);
      for (const Term& term : instruction.terms) {
        for (size_t i = 0; i < kCount; ++i) sum[i] += term.factor * at(term.source).at(i);
      }
      at(instruction.target) = sum;
    }
  }

  void run(const std::vector<Instruction>& work) {
    for (const Instruction& instruction : work) run(instruction);
  }

  void run(const Plan& plan) {
    for (const PlanStep& step : plan.steps) run(step.work);
    if (plan.adaptive != nullptr) run(*plan.adaptive);
  }

  void run(AdaptiveSteps steps) {
    const auto values = [&](Register r) { return std::vector<float>(at(r).begin(), at(r).end()); };
    at(AdaptiveSteps::kBefore) = at(kX);
    int32_t done = 0;
    while (!steps.arrived()) {
      EXPECT_LT(done, steps.steps());
      run(steps.trial());
      run(steps.judge(trial_error(values(AdaptiveSteps::kLow), values(AdaptiveSteps::kHigh),
                                  values(AdaptiveSteps::kBefore))));
      EXPECT_GE(steps.steps_done(), done);
      done = steps.steps_done();
    }
    EXPECT_EQ(done, steps.steps());
  }

  void evaluate(const Instruction& instruction) {
    ++calls;
    Latent guided = denoised(noise, at(instruction.source), instruction, 1);
    const Latent unguided = denoised(noise, at(instruction.source), instruction, 0.9);
    for (size_t i = 0; i < kCount && guidance != 1; ++i) {
      guided[i] = unguided[i] + guidance * (guided[i] - unguided[i]);
    }
    at(instruction.target) = guided;
    if (instruction.unguided >= 0) at(instruction.unguided) = unguided;
  }
};

class Golden : public testing::TestWithParam<json> {};

TEST_P(Golden, EndsWhereItsReferenceEnds) {
  const json& wanted = GetParam();
  const SchedulerConfig config = parse_scheduler_config(wanted["config"].dump());
  const NoiseModel noise(config, wanted.value("image_tokens", int64_t{0}));
  const Sampler sampler = parse_sampler(wanted["sampler"].get<std::string>()).sampler;
  const Levels levels =
      make_levels(noise, config,
                  {.sampler = sampler,
                   .schedule = parse_schedule(wanted.value("schedule", "automatic")),
                   .steps = wanted["steps"].get<int32_t>(),
                   .even_flow = wanted.value("even_flow", false)});
  SamplerOptions options{.sampler = sampler};
  if (wanted.contains("eta")) options.eta = wanted["eta"].get<double>();
  const json churn = wanted.value("churn", json::object());
  options.churn.amount = churn.value("amount", 0.0);
  options.churn.low = churn.value("low", 0.0);
  options.churn.high = churn.value("high", options.churn.high);
  options.noise_scale = churn.value("noise_scale", 1.0);
  const Plan plan = make_plan(noise, levels, options);

  TorchNormals source(wanted["seed"].get<uint64_t>());
  Interpreter interpreter{noise, source, wanted.value("guidance", 1.0)};
  interpreter.registers.resize(static_cast<size_t>(plan.registers));
  interpreter.at(kX) = normals(source, levels.initial_scale);
  interpreter.run(plan);
  const auto result = wanted["result"].get<Latent>();
  double worst = 0;
  for (size_t i = 0; i < kCount; ++i) {
    worst = std::max(worst, std::abs(interpreter.at(kX)[i] * plan.final_scale - result[i]));
  }
  EXPECT_LT(worst, 1e-4);
  if (wanted.contains("told")) {
    EXPECT_EQ(interpreter.calls, wanted["told"]["calls"]);
  }
  if (wanted.contains("timesteps") && plan.evaluations() == levels.steps()) {
    const auto times = wanted["timesteps"].get<std::vector<double>>();
    ASSERT_EQ(levels.times.size(), times.size());
    for (size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(levels.times[i], times[i], 1e-2) << i;
  }
}

AdaptiveSteps some_steps(const NoiseModel& noise) {
  return {noise, {.from = 10, .to = 0.1, .steps = 20}};
}

TEST(AdaptiveSteps, EndAfterSoManyTrials) {
  AdaptiveSteps steps = some_steps(NoiseModel({}));
  for (int32_t i = 0; i < AdaptiveSteps::kMaxTrials; ++i) EXPECT_TRUE(steps.judge(1e9).empty());
  EXPECT_EQ(steps.steps_done(), 0);
  try {
    steps.judge(1e9);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("500 trials"));
  }
}

TEST(AdaptiveSteps, AreLeftAtAnErrorThatIsNoNumber) {
  AdaptiveSteps steps = some_steps(NoiseModel({}));
  EXPECT_FALSE(steps.judge(std::nan("")).empty());
  EXPECT_TRUE(steps.arrived());
}

// A sampler without steps of its own would leave the noise as it is.
TEST(Plans, OfEverySamplerCallTheModel) {
  const SchedulerConfig config;
  const NoiseModel noise(config);
  for (const SamplerName& each : sampler_names()) {
    const Levels levels = make_levels(
        noise, config, {.sampler = each.sampler, .schedule = Schedule::karras, .steps = 5});
    const Plan plan = make_plan(noise, levels, {.sampler = each.sampler});
    EXPECT_EQ(plan.count(), 5) << each.name;
    EXPECT_EQ(plan.adaptive != nullptr, each.sampler == Sampler::dpm_adaptive) << each.name;
    if (plan.adaptive == nullptr) {
      EXPECT_GE(plan.evaluations(), 5) << each.name;
    }
    const auto asks = [](const Instruction& work) { return work.unguided >= 0; };
    EXPECT_EQ(
        std::ranges::any_of(
            plan.steps, [&](const PlanStep& step) { return std::ranges::any_of(step.work, asks); }),
        needs_unguided(each.sampler))
        << each.name;
  }
}

// Calls of the model are what a user counts.
TEST(DpmFast, CallsTheModelOnceAStep) {
  const SchedulerConfig config;
  const NoiseModel noise(config);
  for (int32_t n = 1; n < 20; ++n) {
    const Levels levels = make_levels(
        noise, config, {.sampler = Sampler::dpm_fast, .schedule = Schedule::normal, .steps = n});
    const Plan plan = make_plan(noise, levels, {.sampler = Sampler::dpm_fast});
    EXPECT_EQ(plan.count(), n);
    EXPECT_EQ(plan.evaluations(), n);
    EXPECT_NEAR(plan.steps.back().sigma, noise.sigma_min(), 1e-12);
  }
}

// AUTOMATIC1111 passes its setting for ancestral samplers, 1, to every function of k-diffusion with
// a parameter eta, instead of the function's own default of 0.
TEST(DpmFast, AddsNoiseAsAncestralSamplersDo) {
  const SchedulerConfig config;
  const NoiseModel noise(config);
  const Levels levels = make_levels(
      noise, config, {.sampler = Sampler::dpm_fast, .schedule = Schedule::normal, .steps = 10});
  const auto factors = [&](std::optional<double> eta) {
    std::vector<double> out;
    const Plan plan = make_plan(noise, levels, {.sampler = Sampler::dpm_fast, .eta = eta});
    for (const PlanStep& step : plan.steps) {
      for (const Instruction& each : step.work) {
        if (each.kind == Instruction::Kind::draw) out.push_back(0);
        for (const Term& term : each.terms) out.push_back(term.factor);
      }
    }
    return out;
  };
  EXPECT_EQ(factors({}), factors(1));
  EXPECT_NE(factors({}), factors(0));
}

std::string name_of(const testing::TestParamInfo<json>& info) {
  std::string out = cat(info.index, "_");
  for (const char c : info.param["sampler"].get<std::string>()) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += c;
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Samplers, Golden, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace rbee::diffusion
