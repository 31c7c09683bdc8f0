#include "rbee/diffusion/names.h"

#include <gtest/gtest.h>

#include "rbee/core/cat.h"
#include "rbee/diffusion/scheduler_config.h"
#include "tests/support/expect_error.h"

namespace rbee::diffusion {
namespace {

TEST(Names, AreUnderstoodInEveryonesSpelling) {
  for (const char* text :
       {"DPM++ 2M", "dpmpp_2m", "dpm++2m", "DPMSolverMultistepScheduler", "dpm_solver_multistep"}) {
    EXPECT_EQ(parse_sampler(text).sampler, Sampler::dpmpp_2m) << text;
    EXPECT_FALSE(parse_sampler(text).schedule) << text;
  }
  for (const char* text : {"Euler a", "euler_a", "euler_ancestral", "EULER A"}) {
    EXPECT_EQ(parse_sampler(text).sampler, Sampler::euler_ancestral) << text;
  }
  EXPECT_EQ(parse_sampler("dpm++2s_a").sampler, Sampler::dpmpp_2s_ancestral);
  EXPECT_EQ(parse_sampler("uni_pc").sampler, Sampler::unipc);
  EXPECT_EQ(parse_schedule("SGM Uniform"), Schedule::sgm_uniform);
  EXPECT_EQ(parse_schedule("discrete"), Schedule::normal);
}

TEST(Names, OfOldPicturesHoldBoth) {
  const SamplerChoice karras = parse_sampler("DPM++ 2M SDE Karras");
  EXPECT_EQ(karras.sampler, Sampler::dpmpp_2m_sde);
  EXPECT_EQ(karras.schedule, Schedule::karras);
  EXPECT_EQ(parse_sampler("DPM++ 3M SDE Exponential").schedule, Schedule::exponential);
}

TEST(Names, AreInTheOrderOfTheirValuesAndUnique) {
  for (const SamplerName& entry : sampler_names()) {
    EXPECT_EQ(name(entry.sampler), entry.name);
    EXPECT_EQ(parse_sampler(entry.name).sampler, entry.sampler);
    for (const auto alias : entry.aliases) EXPECT_EQ(parse_sampler(alias).sampler, entry.sampler);
  }
  for (const ScheduleName& entry : schedule_names()) {
    EXPECT_EQ(name(entry.schedule), entry.name);
    EXPECT_EQ(parse_schedule(entry.name), entry.schedule);
  }
}

TEST(Names, ThatAreUnknownAreRefusedWithTheKnownOnes) {
  harness::expect_error("sampler", "\"eulr\"", "DPM++ 2M SDE",
                        [] { static_cast<void>(parse_sampler("eulr")); });
  harness::expect_error("schedule", "\"foo\"", "Karras",
                        [] { static_cast<void>(parse_schedule("foo")); });
}

TEST(SchedulerConfig, ReadsWhatStableDiffusionsFoldersHold) {
  const SchedulerConfig config = parse_scheduler_config(R"({
      "_class_name": "PNDMScheduler", "beta_end": 0.012, "beta_start": 0.00085,
      "beta_schedule": "scaled_linear", "num_train_timesteps": 1000, "set_alpha_to_one": false,
      "skip_prk_steps": true, "steps_offset": 1, "trained_betas": null, "clip_sample": false})");
  EXPECT_EQ(config.sampler, Sampler::plms);
  EXPECT_EQ(config.beta_curve, BetaCurve::scaled_linear);
  EXPECT_EQ(config.spacing, std::nullopt);
  EXPECT_EQ(config.steps_offset, 1);
  EXPECT_EQ(config.ends_at_alpha_one, false);
}

TEST(SchedulerConfig, TakesEulerForSchedulersThatAreNotThere) {
  for (const char* name : {"DEISMultistepScheduler", "DPMSolverSinglestepScheduler"}) {
    const SchedulerConfig config = parse_scheduler_config(
        cat(R"({"beta_schedule": "scaled_linear", "_class_name": ")", name, R"("})"));
    EXPECT_EQ(config.sampler, Sampler::euler);
    EXPECT_EQ(config.beta_curve, BetaCurve::scaled_linear);
  }
}

TEST(SchedulerConfig, NamesWhatItDoesNotKnow) {
  const auto refused = [](const char* text) {
    try {
      parse_scheduler_config(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported);
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(refused(R"({"beta_schedule": "sigmoid"})"), testing::HasSubstr("beta_schedule"));
  harness::expect_error("scheduler_config.json", "beta_end", "rise",
                        [] { parse_scheduler_config(R"({"beta_end": 2})"); });
  harness::expect_error("scheduler_config.json", "steps_offset", "type",
                        [] { parse_scheduler_config(R"({"steps_offset": "one"})"); });
}

}  // namespace
}  // namespace rbee::diffusion
