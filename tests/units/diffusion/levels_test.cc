#include "rbee/diffusion/levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rbee/core/cat.h"
#include "rbee/diffusion/timesteps.h"
#include "tests/support/expect_error.h"

namespace rbee::diffusion {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

Levels levels_of(Schedule schedule, int32_t steps = 10, Sampler sampler = Sampler::euler) {
  const SchedulerConfig config;
  return make_levels(NoiseModel(config), config,
                     {.sampler = sampler, .schedule = schedule, .steps = steps});
}

void expect_sigmas(const Levels& levels, std::vector<double> wanted, double tolerance = 6e-5) {
  wanted.push_back(0);
  EXPECT_THAT(levels.sigmas, Pointwise(DoubleNear(tolerance), wanted));
  EXPECT_EQ(levels.times.size() + 1, levels.sigmas.size());
}

TEST(NoiseModel, KnowsStableDiffusionsLevels) {
  const SchedulerConfig config;
  const std::vector<double> alphas = cumulative_alphas(config);
  EXPECT_NEAR(alphas.front(), 0.99915, 1e-8);
  EXPECT_NEAR(alphas[500], 0.2763326838, 1e-9);
  EXPECT_NEAR(alphas.back(), 0.0046600985, 1e-9);
  const NoiseModel noise(config);
  EXPECT_NEAR(noise.sigma_min(), 0.0291671582, 1e-9);
  EXPECT_NEAR(noise.sigmas()[500], 1.6182788260, 1e-9);
  EXPECT_NEAR(noise.sigma_max(), 14.6146412293, 1e-9);
}

TEST(NoiseModel, InterpolatesBetweenTimesteps) {
  const NoiseModel noise{SchedulerConfig{}};
  const double between = noise.sigma(500.25);
  EXPECT_NEAR(std::log(between),
              0.75 * std::log(noise.sigmas()[500]) + 0.25 * std::log(noise.sigmas()[501]), 1e-12);
  EXPECT_NEAR(noise.time(between), 500.25, 1e-9);
  EXPECT_EQ(noise.time(100), 999);
  EXPECT_EQ(noise.time(0.001), 0);
}

TEST(NoiseModel, EndsWithoutSignalWhenAsked) {
  SchedulerConfig config;
  config.zero_terminal_snr = true;
  const std::vector<double> alphas = cumulative_alphas(config);
  EXPECT_NEAR(alphas.front(), 0.99915, 1e-8);
  EXPECT_NEAR(alphas[500], 0.2410187828, 1e-9);
  EXPECT_NEAR(NoiseModel(config).sigma_max(), 4096, 1e-3);
}

// diffusers 0.42.1: set_timesteps(8) of from_config() with and without the field.
TEST(Levels, OfSamplersWithoutSigmaSchedulesAreTheirSpacings) {
  const auto levels = [](const char* class_name, Sampler sampler, bool on) {
    const SchedulerConfig config =
        parse_scheduler_config(cat(R"({"_class_name": ")", class_name, R"(Scheduler", )",
                                   R"("use_karras_sigmas": )", on ? "true" : "false", "}"));
    return make_levels(NoiseModel(config), config, {.sampler = sampler, .steps = 8}).sigmas;
  };
  using enum Sampler;
  for (const auto& [class_name, sampler] : {std::pair{"DDIM", ddim},
                                            {"EulerAncestralDiscrete", euler_ancestral},
                                            {"DDPM", ddpm},
                                            {"PNDM", plms},
                                            {"LCM", lcm},
                                            {"TCD", tcd},
                                            {"EulerDiscrete", ddim}}) {
    EXPECT_EQ(levels(class_name, sampler, true), levels(class_name, sampler, false)) << class_name;
  }
  for (const char* class_name : {"EulerDiscrete", "EulerAncestralDiscrete"}) {
    EXPECT_NE(levels(class_name, euler, true), levels(class_name, euler, false)) << class_name;
  }
}

TEST(Levels, OfNamedSchedulesAreThoseOfKDiffusion) {
  expect_sigmas(levels_of(Schedule::karras),
                {14.6146, 9.1029, 5.4784, 3.1686, 1.7494, .9141, .4469, .2014, .0819, .0292});
  expect_sigmas(levels_of(Schedule::exponential),
                {14.6146, 7.3249, 3.6712, 1.8400, .9222, .4622, .2317, .1161, .0582, .0292});
  expect_sigmas(levels_of(Schedule::normal),
                {14.6146, 7.8399, 4.6092, 2.9183, 1.9502, 1.3449, .9324, .6250, .3687, .0292});
  expect_sigmas(levels_of(Schedule::sgm_uniform),
                {14.6146, 8.3072, 5.0924, 3.3251, 2.2797, 1.6156, 1.1629, .8319, .5712, .3437});
  expect_sigmas(levels_of(Schedule::simple),
                {14.6146, 8.3028, 5.0878, 3.3211, 2.2765, 1.6129, 1.1606, .8299, .5693, .3417});
}

TEST(Levels, OfAlignYourStepsAreItsTable) {
  expect_sigmas(levels_of(Schedule::align_your_steps),
                {14.615, 6.475, 3.861, 2.697, 1.886, 1.396, .963, .652, .399, .152}, 1e-9);
  const Levels twice = levels_of(Schedule::align_your_steps, 20);
  EXPECT_NEAR(twice.sigmas[1], std::sqrt(14.615 * 6.475), 1e-9);
}

TEST(Levels, OfDdimUniformMayBeOneMore) {
  const NoiseModel noise{SchedulerConfig{}};
  const Levels levels = levels_of(Schedule::ddim_uniform, 30);
  ASSERT_EQ(levels.steps(), 31);  // every 33rd of 1000, from the second on
  EXPECT_EQ(levels.sigmas[0], noise.sigmas()[991]);
  EXPECT_EQ(levels.sigmas[30], noise.sigmas()[1]);
}

// Quantiles of Beta(0.6, 0.6) by scipy.stats.beta.ppf.
TEST(Levels, OfBetaLieAtItsQuantiles) {
  EXPECT_NEAR(beta_quantile(0.1, 0.6, 0.6), 0.0395844055888, 1e-10);
  EXPECT_NEAR(beta_quantile(0.75, 0.6, 0.6), 0.824319621347, 1e-10);
  EXPECT_NEAR(beta_quantile(0.3, 2.5, 0.7), 0.709775891215, 1e-10);
  const NoiseModel noise{SchedulerConfig{}};
  const Levels by_sigma = levels_of(Schedule::beta, 5);
  EXPECT_NEAR(
      by_sigma.sigmas[1],
      noise.sigma_min() + beta_quantile(0.75, 0.6, 0.6) * (noise.sigma_max() - noise.sigma_min()),
      1e-9);
  const Levels by_time = levels_of(Schedule::beta_timesteps, 4);
  EXPECT_EQ(by_time.sigmas[1], noise.sigmas()[823]);
}

TEST(Levels, OfKlOptimalSpanTheModel) {
  const Levels levels = levels_of(Schedule::kl_optimal, 5);
  const NoiseModel noise{SchedulerConfig{}};
  EXPECT_NEAR(levels.sigmas[0], noise.sigma_max(), 1e-9);
  EXPECT_NEAR(levels.sigmas[2],
              std::tan((std::atan(noise.sigma_min()) + std::atan(noise.sigma_max())) / 2), 1e-9);
  EXPECT_NEAR(levels.sigmas[4], noise.sigma_min(), 1e-12);
}

// By ComfyUI's formula, of which these are the values for 6 and for 5 steps.
TEST(Levels, OfLinearQuadraticFallSlowlyFirst) {
  const double high = NoiseModel{SchedulerConfig{}}.sigma_max();
  const auto shares = [&](int32_t n) {
    std::vector<double> out = levels_of(Schedule::linear_quadratic, n).sigmas;
    for (double& sigma : out) sigma /= high;
    return out;
  };
  using testing::DoubleNear;
  using testing::ElementsAre;
  EXPECT_THAT(shares(6), ElementsAre(DoubleNear(1, 1e-9), DoubleNear(0.991666667, 1e-9),
                                     DoubleNear(0.983333333, 1e-9), DoubleNear(0.975, 1e-9),
                                     DoubleNear(0.861111111, 1e-9), DoubleNear(0.536111111, 1e-9),
                                     DoubleNear(0, 1e-9)));
  EXPECT_THAT(shares(5), ElementsAre(DoubleNear(1, 1e-9), DoubleNear(0.9875, 1e-9),
                                     DoubleNear(0.975, 1e-9), DoubleNear(0.858333333, 1e-9),
                                     DoubleNear(0.533333333, 1e-9), DoubleNear(0, 1e-9)));
  EXPECT_THAT(shares(1), ElementsAre(DoubleNear(1, 1e-9), DoubleNear(0, 1e-9)));
}

TEST(Levels, OfFlowsAreShifted) {
  SchedulerConfig config;
  config.prediction = Prediction::flow;
  config.flow.shift = 3;
  const NoiseModel noise(config);
  const LevelOptions simple{.schedule = Schedule::simple, .steps = 10};
  expect_sigmas(make_levels(noise, config, simple),
                {1, .9643, .9231, .8750, .8182, .7500, .6667, .5625, .4286, .2500});
  expect_sigmas(make_levels(noise, config, {.steps = 10}),
                {1, .9601, .9133, .8577, .7904, .7073, .6022, .4649, .2780, .0089});
  config.flow = {.dynamic = true};
  const NoiseModel flux(config, 4096);
  expect_sigmas(make_levels(flux, config, {.steps = 4, .even_flow = true}),
                {1, .9045, .7595, .5128});
  config.flow = {};
  expect_sigmas(make_levels(NoiseModel(config), config, {.steps = 4, .even_flow = true}),
                {1, .75, .5, .25});
}

TEST(Levels, LeaveTheLastButOneOutForSomeSamplers) {
  const Levels all = levels_of(Schedule::karras, 11);
  const Levels fewer = levels_of(Schedule::karras, 10, Sampler::dpm2);
  ASSERT_EQ(fewer.steps(), 10);
  EXPECT_EQ(fewer.sigmas[9], all.sigmas[9]);
  EXPECT_EQ(fewer.sigmas[10], 0);
}

TEST(Levels, OfPicturesStartLater) {
  const Levels all = levels_of(Schedule::karras);
  const Levels last = levels_from(all, 7);
  EXPECT_EQ(last.steps(), 3);
  EXPECT_EQ(last.sigmas[0], all.sigmas[7]);
  EXPECT_EQ(last.initial_scale, all.sigmas[7]);
  harness::expect_error("levels", "10", "10", [&] { levels_from(all, 10); });
}

TEST(Timesteps, AreThoseOfDiffusers) {
  const auto leading = timesteps({.spacing = Schedule::leading, .steps = 20, .offset = 1});
  EXPECT_EQ(leading.front(), 951);
  EXPECT_EQ(leading.back(), 1);
  const auto linspace = timesteps({.spacing = Schedule::linspace, .steps = 20});
  EXPECT_EQ(linspace[1], 946);
  EXPECT_EQ(linspace.back(), 0);
  EXPECT_THAT(timesteps({.spacing = Schedule::trailing, .steps = 4}),
              testing::ElementsAre(999, 749, 499, 249));
  EXPECT_THAT(timesteps({.grid = TimestepGrid::consistency, .steps = 4}),
              testing::ElementsAre(999, 759, 499, 259));
}

TEST(Timesteps, CannotBeMoreThanThereAre) {
  harness::expect_error("steps", "1000", "not less",
                        [] { static_cast<void>(timesteps({.steps = 1000})); });
  harness::expect_error("steps", "51", "50", [] {
    static_cast<void>(timesteps({.grid = TimestepGrid::consistency, .steps = 51}));
  });
  harness::expect_error("steps", "0", "1000", [] { levels_of(Schedule::karras, 0); });
}

}  // namespace
}  // namespace rbee::diffusion
