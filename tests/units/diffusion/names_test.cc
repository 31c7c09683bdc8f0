#include "rbee/diffusion/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "rbee/diffusion/levels.h"
#include "rbee/diffusion/noise_model.h"
#include "rbee/diffusion/scheduler_config.h"
#include "rbee/diffusion/scheduler_fields.h"
#include "tests/support/data_folder.h"
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

// Other programs' names for one formula: diffusers' classes, whole or as services write them, its
// algorithms, and InvokeAI 2.
TEST(Names, OfOneFormulaAreOneSampler) {
  using enum Sampler;
  for (const auto& [text, sampler] :
       {std::pair{"DPMSolverMultistep", dpmpp_2m}, std::pair{"dpmsolver++", dpmpp_2m},
        std::pair{"DPM-Solver++", dpmpp_2m}, std::pair{"k_dpmpp_2", dpmpp_2m},
        std::pair{"k_dpmpp_2_a", dpmpp_2s_ancestral}, std::pair{"sde-dpmsolver++", dpmpp_2m_sde},
        std::pair{"HeunDiscrete", heun}, std::pair{"K_EULER", euler}, std::pair{"KLMS", lms},
        std::pair{"FlaxDDIMScheduler", ddim}, std::pair{"DDIMParallelScheduler", ddim},
        std::pair{"DDPMParallelScheduler", ddpm}, std::pair{"FlowMatchLCMScheduler", lcm},
        std::pair{"FlowMatchEulerDiscrete", euler}, std::pair{"UniPCMultistep", unipc},
        std::pair{"KDPM2AncestralDiscrete", dpm2_ancestral}, std::pair{"kdpm_2", dpm2}}) {
    EXPECT_EQ(parse_sampler(text).sampler, sampler) << text;
    EXPECT_FALSE(parse_sampler(text).schedule) << text;
  }
}

TEST(Names, OfOldPicturesHoldBoth) {
  const SamplerChoice karras = parse_sampler("DPM++ 2M SDE Karras");
  EXPECT_EQ(karras.sampler, Sampler::dpmpp_2m_sde);
  EXPECT_EQ(parse_sampler("DPM++ 2M SDE Heun Karras").sampler, Sampler::dpmpp_2m_sde_heun);
  EXPECT_EQ(karras.schedule, Schedule::karras);
  EXPECT_EQ(parse_sampler("DPM++ 3M SDE Exponential").schedule, Schedule::exponential);
  EXPECT_EQ(parse_sampler("Euler a Uniform").schedule, Schedule::normal);
  EXPECT_EQ(parse_sampler("DPM++ 2M AYS").schedule, Schedule::align_your_steps);
}

// The labels of AUTOMATIC1111 1.8, which include the schedule.
TEST(Names, OfAutomatic1111AreSplit) {
  for (const char* sampler : {"LMS", "DPM2", "DPM2 a", "DPM++ 2S a", "DPM++ 2M", "DPM++ SDE",
                              "DPM++ 2M SDE", "DPM++ 3M SDE"}) {
    EXPECT_FALSE(parse_sampler(sampler).schedule) << sampler;
    const SamplerChoice karras = parse_sampler(cat(sampler, " Karras"));
    EXPECT_EQ(karras.sampler, parse_sampler(sampler).sampler) << sampler;
    EXPECT_EQ(karras.schedule, Schedule::karras) << sampler;
  }
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

TEST(Names, OfRestartMeanKarrasLevelsAsInAutomatic1111) {
  EXPECT_EQ(parse_sampler("restart").sampler, Sampler::restart);
  EXPECT_EQ(customary_schedule(Sampler::restart), Schedule::karras);
}

TEST(Names, OfDeisAndTheOlderDpmSolvers) {
  for (const char* text : {"DEIS", "deis", "DEISMultistepScheduler"}) {
    EXPECT_EQ(parse_sampler(text).sampler, Sampler::deis) << text;
  }
  for (const char* text : {"DPM fast", "dpm_fast", "k_dpm_fast", "DPM fast Karras"}) {
    EXPECT_EQ(parse_sampler(text).sampler, Sampler::dpm_fast) << text;
  }
  for (const char* text : {"DPM adaptive", "dpm_adaptive", "k_dpm_ad"}) {
    EXPECT_EQ(parse_sampler(text).sampler, Sampler::dpm_adaptive) << text;
  }
}

TEST(Names, OfComfyUisOwnSamplers) {
  using enum Sampler;
  for (const auto& [text, sampler] :
       {std::pair{"ipndm", ipndm},
        std::pair{"IPNDM_V", ipndm_v},
        std::pair{"sample_ipndm_v", ipndm_v},
        std::pair{"res_multistep", res_multistep},
        std::pair{"Res Multistep", res_multistep},
        std::pair{"gradient_estimation", gradient_estimation},
        std::pair{"heunpp2", heunpp2},
        std::pair{"HeunPP2", heunpp2},
        std::pair{"Heun++", heunpp2},
        std::pair{"seeds_2", seeds_2},
        std::pair{"seeds_3", seeds_3},
        std::pair{"exp_heun_2_x0", exp_heun_2_x0},
        std::pair{"exp_heun_2_x0_sde", exp_heun_2_x0_sde},
        std::pair{"er_sde", er_sde},
        std::pair{"sa_solver", sa_solver},
        std::pair{"sa_solver_pece", sa_solver_pece},
        std::pair{"res_multistep_ancestral", res_multistep_ancestral},
        std::pair{"res_multistep_cfg_pp", res_multistep_cfg_pp},
        std::pair{"res_multistep_ancestral_cfg_pp", res_multistep_ancestral_cfg_pp},
        std::pair{"gradient_estimation_cfg_pp", gradient_estimation_cfg_pp},
        std::pair{"dpmpp_2m_cfg_pp", dpmpp_2m_cfg_pp},
        std::pair{"dpmpp_2s_ancestral_cfg_pp", dpmpp_2s_ancestral_cfg_pp}}) {
    EXPECT_EQ(parse_sampler(text).sampler, sampler) << text;
  }
}

// All that ComfyUI's node KSampler offered at the end of 2026.
TEST(Names, OfComfyUisListAreKnown) {
  for (const char* text : {"euler",
                           "euler_cfg_pp",
                           "euler_ancestral",
                           "euler_ancestral_cfg_pp",
                           "heun",
                           "heunpp2",
                           "exp_heun_2_x0",
                           "exp_heun_2_x0_sde",
                           "dpm_2",
                           "dpm_2_ancestral",
                           "lms",
                           "dpm_fast",
                           "dpm_adaptive",
                           "dpmpp_2s_ancestral",
                           "dpmpp_2s_ancestral_cfg_pp",
                           "dpmpp_sde",
                           "dpmpp_sde_gpu",
                           "dpmpp_2m",
                           "dpmpp_2m_cfg_pp",
                           "dpmpp_2m_sde",
                           "dpmpp_2m_sde_gpu",
                           "dpmpp_2m_sde_heun",
                           "dpmpp_2m_sde_heun_gpu",
                           "dpmpp_3m_sde",
                           "dpmpp_3m_sde_gpu",
                           "ddpm",
                           "lcm",
                           "ipndm",
                           "ipndm_v",
                           "deis",
                           "res_multistep",
                           "res_multistep_cfg_pp",
                           "res_multistep_ancestral",
                           "res_multistep_ancestral_cfg_pp",
                           "gradient_estimation",
                           "gradient_estimation_cfg_pp",
                           "er_sde",
                           "seeds_2",
                           "seeds_3",
                           "sa_solver",
                           "sa_solver_pece",
                           "ddim",
                           "uni_pc",
                           "uni_pc_bh2"}) {
    EXPECT_NO_THROW(static_cast<void>(parse_sampler(text))) << text;
  }
  for (const char* text : {"normal", "karras", "exponential", "sgm_uniform", "simple",
                           "ddim_uniform", "beta", "linear_quadratic", "kl_optimal"}) {
    EXPECT_NO_THROW(static_cast<void>(parse_schedule(text))) << text;
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
  for (const char* name : {"DPMSolverSinglestepScheduler", "SASolverScheduler"}) {
    const SchedulerConfig config = parse_scheduler_config(
        cat(R"({"beta_schedule": "scaled_linear", "_class_name": ")", name, R"("})"));
    EXPECT_EQ(config.sampler, Sampler::euler);
    EXPECT_EQ(config.beta_curve, BetaCurve::scaled_linear);
    EXPECT_THAT(config.ignored, testing::ElementsAre(cat("_class_name \"", name, "\"")));
  }
}

// Settings by diffusers' keys that its solvers use and ours do not.
TEST(SchedulerConfig, NamesSettingsThatItDoesNotCompute) {
  const auto ignored = [](std::string_view class_name, std::string_view settings) {
    const std::string text =
        cat(R"({"_class_name": ")", class_name, R"(Scheduler", )", settings, "}");
    return parse_scheduler_config(text).ignored;
  };
  using testing::ElementsAre;
  using testing::IsEmpty;
  for (const auto& [setting, named] :
       {std::pair{R"("solver_order": 1)", "solver_order 1"},
        {R"("solver_order": 3)", "solver_order 3"},
        {R"("solver_type": "heun")", "solver_type \"heun\""},
        {R"("algorithm_type": "dpmsolver")", "algorithm_type \"dpmsolver\""},
        {R"("thresholding": true)", "thresholding true"},
        {R"("final_sigmas_type": "sigma_min")", "final_sigmas_type \"sigma_min\""},
        {R"("euler_at_final": true)", "euler_at_final true"},
        {R"("lower_order_final": false)", "lower_order_final false"},
        {R"("use_flow_sigmas": true)", "use_flow_sigmas true"},
        {R"("lambda_min_clipped": -5.1)", "lambda_min_clipped -5.1"},
        {R"("use_lu_lambdas": true)", "use_lu_lambdas true"}}) {
    EXPECT_THAT(ignored("DPMSolverMultistep", setting), ElementsAre(named));
  }
  EXPECT_THAT(ignored("DPMSolverMultistep", R"("solver_order": 2, "solver_type": "midpoint",
      "algorithm_type": "dpmsolver++", "thresholding": false, "lower_order_final": true,
      "final_sigmas_type": "zero", "euler_at_final": false, "variance_type": null,
      "use_flow_sigmas": false, "lambda_min_clipped": -Infinity)"),
              IsEmpty());
  EXPECT_THAT(ignored("DPMSolverMultistep",
                      R"("algorithm_type": "sde-dpmsolver++", "solver_type": "heun")"),
              IsEmpty());
  EXPECT_THAT(ignored("UniPCMultistep", R"("solver_type": "bh2", "solver_order": 2)"), IsEmpty());
  EXPECT_THAT(ignored("UniPCMultistep", R"("solver_type": "bh1", "predict_x0": false)"),
              ElementsAre("solver_type \"bh1\"", "predict_x0 false"));
  EXPECT_THAT(ignored("DEISMultistep", R"("solver_type": "logrho", "solver_order": 3)"),
              ElementsAre("solver_order 3"));
  // A setting that a class does not have has no effect.
  EXPECT_THAT(ignored("EulerDiscrete", R"("solver_order": 3)"), IsEmpty());
  EXPECT_THAT(ignored("EulerDiscrete", R"("timestep_type": "continuous")"),
              ElementsAre("timestep_type \"continuous\""));
  EXPECT_THAT(ignored("EulerDiscrete", R"("final_sigmas_type": "sigma_min")"),
              ElementsAre("final_sigmas_type \"sigma_min\""));
  EXPECT_THAT(ignored("EulerDiscrete", R"("sigma_min": 0.1, "sigma_max": 9)"), IsEmpty());
  EXPECT_THAT(ignored("EulerDiscrete", R"("use_karras_sigmas": true, "sigma_min": 0.1)"),
              ElementsAre("sigma_min 0.1"));
  EXPECT_THAT(ignored("UniPCMultistep", R"("use_beta_sigmas": true, "sigma_max": 9)"),
              ElementsAre("sigma_max 9"));
  EXPECT_THAT(ignored("FlowMatchEulerDiscrete", R"("use_karras_sigmas": true)"),
              ElementsAre("use_karras_sigmas true"));
  EXPECT_THAT(ignored("FlowMatchHeunDiscrete", R"("use_karras_sigmas": true)"), IsEmpty());
  EXPECT_THAT(ignored("DDIM", R"("clip_sample": true)"), ElementsAre("clip_sample true"));
  EXPECT_THAT(ignored("PNDM", R"("clip_sample": true, "skip_prk_steps": true)"), IsEmpty());
  EXPECT_THAT(ignored("PNDM", R"("skip_prk_steps": false)"), ElementsAre("skip_prk_steps false"));
}

// A value of each field that changes what is read, besides those of the sigma schedules.
constexpr std::pair<const char*, const char*> kOtherValues[] = {
    {"num_train_timesteps", "900"},
    {"beta_start", "0.0002"},
    {"beta_end", "0.3"},
    {"beta_schedule", R"("squaredcos_cap_v2")"},
    {"trained_betas", "[0.1, 0.2]"},
    {"prediction_type", R"("sample")"},
    {"timestep_spacing", R"("trailing")"},
    {"steps_offset", "7"},
    {"rescale_betas_zero_snr", "true"},
    {"original_inference_steps", "20"},
    {"set_alpha_to_one", "true"},
    {"shift", "3"},
    {"use_dynamic_shifting", "true"},
    {"base_shift", "0.1"},
    {"max_shift", "3"},
    {"base_image_seq_len", "10"},
    {"max_image_seq_len", "9999"},
    {"invert_sigmas", "true"},
    {"shift_terminal", "0.1"},
    {"stochastic_sampling", "true"},
    {"interpolation_type", R"("log_linear")"},
    {"timestep_type", R"("continuous")"},
    {"clip_sample", "true"},
    {"thresholding", "true"},
    {"variance_type", R"("learned")"},
    {"skip_prk_steps", "true"},
    {"solver_order", "3"},
    {"lower_order_final", "false"},
    {"euler_at_final", "true"},
    {"use_lu_lambdas", "true"},
    {"use_flow_sigmas", "true"},
    {"lambda_min_clipped", "-5"},
    {"predict_x0", "false"},
    {"disable_corrector", "[0]"},
    {"algorithm_type", R"("sde-dpmsolver")"},
    {"solver_type", R"("odd")"},
    {"final_sigmas_type", R"("sigma_min")"},
    {"flow_shift", "5"}};

// Files keep the fields of the class that they were converted from: from_config() of diffusers.
TEST(SchedulerConfig, PassesFieldsOverThatItsClassDoesNotHave) {
  std::ifstream file(test::data_folder() + "/units/diffusion/data/scheduler_fields.json");
  const auto classes = nlohmann::json::parse(file);
  ASSERT_TRUE(classes.contains("DDIMScheduler"));
  int known = 0;
  for (const auto& [name, defaults] : classes.items()) {
    const std::string start = cat(R"({"_class_name": ")", name, '"');
    if (!has_field(name, "num_train_timesteps")) continue;
    ++known;
    const SchedulerConfig plain = parse_scheduler_config(start + "}");
    for (const auto& [field, value] : kOtherValues) {
      const bool has = defaults.contains(field);
      EXPECT_EQ(has_field(name, field), has) << name << " " << field;
      // Another than the default of the class.
      const bool is_default = has && defaults[field] == nlohmann::json::parse(value);
      const auto other = is_default ? "false" : value;
      const auto read = parse_scheduler_config(cat(start, R"(, ")", field, R"(": )", other, "}"));
      EXPECT_EQ(read != plain, has) << name << " " << field;
    }
    for (const char* field :
         {"use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas", "sigma_min",
          "sigma_max", "timestep_scaling", "solver_p", "time_shift_type"}) {
      EXPECT_EQ(has_field(name, field), defaults.contains(field)) << name << " " << field;
    }
    if (!name.starts_with("FlowMatch")) {
      EXPECT_EQ(has_sigma_schedules(plain.sampler), has_field(name, "use_karras_sigmas")) << name;
    }
  }
  EXPECT_EQ(known, 20);
  EXPECT_EQ(has_field("SASolverScheduler", "beta_start"), std::nullopt);
}

// What a file does not say is its class's default: the noise levels are those of a file that says
// all of them, and the same settings are not computed.
TEST(SchedulerConfig, TakesTheDefaultsOfTheClass) {
  std::ifstream file(test::data_folder() + "/units/diffusion/data/scheduler_fields.json");
  const auto classes = nlohmann::json::parse(file);
  for (const auto& [name, defaults] : classes.items()) {
    const auto fields = fields_of(name);
    if (!fields) continue;
    for (const ClassField& field : *fields) {
      ASSERT_TRUE(defaults.contains(field.name)) << name << " " << field.name;
      EXPECT_EQ(nlohmann::json::parse(field.value), defaults[field.name])
          << name << " " << field.name;
    }
    auto all = defaults;
    all["_class_name"] = name;
    const SchedulerConfig plain = parse_scheduler_config(cat(R"({"_class_name": ")", name, "\"}"));
    const SchedulerConfig said = parse_scheduler_config(all.dump());
    EXPECT_EQ(plain.ignored, said.ignored) << name;
    const NoiseModel noise(plain, 1024), other(said, 1024);
    const LevelOptions options{.sampler = plain.sampler, .steps = 7};
    const Levels levels = make_levels(noise, plain, options);
    EXPECT_EQ(levels.sigmas, make_levels(other, said, options).sigmas) << name;
    EXPECT_EQ(levels.times, make_levels(other, said, options).times) << name;
  }
}

TEST(SchedulerConfig, IsOfTheIndexesClass) {
  const auto read = [](std::string_view text, const PipelineClasses& index) {
    return parse_scheduler_config(text, index);
  };
  // A file without a class, and one whose class is another.
  for (const char* text : {"{}", R"({"_class_name": "DDIMScheduler"})"}) {
    const SchedulerConfig lcm = read(text, {"LCMScheduler", ""});
    EXPECT_EQ(lcm.sampler, Sampler::lcm);
    EXPECT_EQ(lcm.beta_curve, BetaCurve::scaled_linear);
    EXPECT_THAT(lcm.ignored, testing::IsEmpty());
  }
  const SchedulerConfig nameless = parse_scheduler_config("{}");
  EXPECT_EQ(nameless.sampler, Sampler::euler);
  EXPECT_THAT(nameless.ignored, testing::ElementsAre("_class_name null"));
}

// The constructors of diffusers' pipelines do so.
TEST(SchedulerConfig, OfAnOldFileIsMendedAsByItsPipeline) {
  const auto read = [](const char* scheduler, const char* pipeline) {
    return parse_scheduler_config("{}", {scheduler, pipeline});
  };
  using testing::ElementsAre;
  using testing::IsEmpty;
  for (const char* pipeline : {"StableDiffusionPipeline", "StableDiffusionImg2ImgPipeline"}) {
    EXPECT_EQ(read("DDIMScheduler", pipeline).steps_offset, 1);
    EXPECT_THAT(read("DDIMScheduler", pipeline).ignored, IsEmpty());
    EXPECT_THAT(read("PNDMScheduler", pipeline).ignored, ElementsAre("skip_prk_steps false"));
  }
  const char* inpaint = "StableDiffusionInpaintPipeline";
  EXPECT_EQ(read("PNDMScheduler", inpaint).steps_offset, 1);
  EXPECT_THAT(read("PNDMScheduler", inpaint).ignored, IsEmpty());
  EXPECT_THAT(read("DDIMScheduler", inpaint).ignored, ElementsAre("clip_sample true"));
  const char* xl = "StableDiffusionXLPipeline";
  EXPECT_EQ(read("DDIMScheduler", xl).steps_offset, 0);
  EXPECT_THAT(read("DDIMScheduler", xl).ignored, ElementsAre("clip_sample true"));
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
  harness::expect_error("scheduler_config.json", "base_image_seq_len 4096", "do not rise", [] {
    parse_scheduler_config(R"({"base_image_seq_len": 4096, "max_image_seq_len": 256})");
  });
}

TEST(SchedulerConfig, IntegersAreWholeAndInTheirRange) {
  constexpr const char* kTrain = "a whole number from 2 to 100000";
  constexpr const char* kOffset = "a whole number from 0 to 1000";
  constexpr const char* kTokens = "a whole number from 0 to 1048576";
  constexpr const char* kDistilled = "a whole number from 1 to 1000";
  struct Case {
    const char *field, *value, *wanted;
  };
  // 4294968296 is 1000 in 32 bits, and 18446744073709551615 is -1 in 64.
  for (const auto& [field, value, wanted] :
       {Case{"num_train_timesteps", "4294968296", kTrain},
        {"num_train_timesteps", "1000000000000", kTrain},
        {"num_train_timesteps", "1000.5", kTrain},
        {"num_train_timesteps", "1", kTrain},
        {"num_train_timesteps", "true", kTrain},
        {"num_train_timesteps", "\"1000\"", kTrain},
        {"steps_offset", "2147483647", kOffset},
        {"steps_offset", "4294967296", kOffset},
        {"steps_offset", "2.5", kOffset},
        {"steps_offset", "\"one\"", kOffset},
        {"original_inference_steps", "4294967346", kDistilled},
        {"original_inference_steps", "2.5", kDistilled},
        {"base_image_seq_len", "-9223372036854775807", kTokens},
        {"base_image_seq_len", "256.5", kTokens},
        {"max_image_seq_len", "9223372036854775807", kTokens},
        {"max_image_seq_len", "18446744073709551615", kTokens}}) {
    harness::expect_error(
        cat("scheduler_config.json: ", field).c_str(), cat("is ", value).c_str(), wanted,
        [&] { parse_scheduler_config(cat(R"({")", field, R"(": )", value, "}")); });
  }
  const SchedulerConfig whole = parse_scheduler_config(R"({"num_train_timesteps": 500.0})");
  EXPECT_EQ(whole.train_steps, 500);
}

TEST(SchedulerConfig, ValuesOfAnotherKindAreNamed) {
  for (const char* field : {"beta_start", "trained_betas", "rescale_betas_zero_snr", "shift",
                            "timestep_spacing", "use_karras_sigmas", "_class_name"}) {
    harness::expect_error(cat("scheduler_config.json: ", field).c_str(), "is {}", "wanted",
                          [&] { parse_scheduler_config(cat(R"({")", field, R"(": {}})")); });
  }
  // Not 1.
  harness::expect_error("scheduler_config.json: trained_betas", "is true", "a number",
                        [] { parse_scheduler_config(R"({"trained_betas": [true, 0.5]})"); });
}

// LCM's field original_inference_steps, 50 by default, binds no other class.
TEST(SchedulerConfig, ShortTrainingIsRefusedOnlyOfClassesThatWereDistilled) {
  for (const char* name :
       {"DDIMScheduler", "DPMSolverMultistepScheduler", "PNDMScheduler", "EulerDiscreteScheduler",
        "FlowMatchEulerDiscreteScheduler", "SASolverScheduler"}) {
    const SchedulerConfig config = parse_scheduler_config(
        cat(R"({"num_train_timesteps": 20, "_class_name": ")", name, R"("})"));
    EXPECT_EQ(config.train_steps, 20) << name;
    const NoiseModel noise(config, 1024);
    EXPECT_EQ(make_levels(noise, config, {.sampler = config.sampler, .steps = 4}).steps(), 4);
  }
  for (const char* name : {"LCMScheduler", "TCDScheduler"}) {
    const std::string start = cat(R"({"num_train_timesteps": 20, "_class_name": ")", name, '"');
    harness::expect_error("scheduler_config.json: original_inference_steps", "is 50", "1 to 20",
                          [&] { parse_scheduler_config(start + "}"); });
    const auto own = parse_scheduler_config(start + R"(, "original_inference_steps": 10})");
    EXPECT_EQ(own.consistency_steps, 10);
  }
}

// diffusers' LCMScheduler.set_timesteps() refuses it too.
TEST(Levels, OfDistilledSamplersAreRefusedAfterAShorterTraining) {
  const SchedulerConfig config =
      parse_scheduler_config(R"({"num_train_timesteps": 20, "_class_name": "DDIMScheduler"})");
  const NoiseModel noise(config, 1024);
  harness::expect_error("sampler", "among 50 timesteps", "trained on 20",
                        [&] { make_levels(noise, config, {.sampler = Sampler::lcm, .steps = 4}); });
}

TEST(NoiseModel, RefusesLevelsThatAreNoNumbers) {
  const auto refused = [](const char* text, const char* what) {
    const SchedulerConfig config = parse_scheduler_config(text);
    harness::expect_error("noise", what, "", [&] { NoiseModel(config, 1024); });
  };
  // 0.5^5000 rounds to 0 as a double, and 1 - 1e-300 to 1.
  refused(R"({"beta_start": 0.5, "beta_end": 0.5, "num_train_timesteps": 5000})", "or nothing");
  refused(R"({"beta_start": 1e-300, "beta_end": 0.01})", "leave all");
  refused(R"({"_class_name": "FlowMatchEulerDiscreteScheduler", "use_dynamic_shifting": true,
              "base_shift": 1e38})",
          "shift of 1024 tokens is inf");
}

// Names from A1111's lists, InvokeAI, NovelAI, ComfyUI and stable-diffusion.cpp.
TEST(Names, SamplersHaveTheAliasesOfOthers) {
  const auto expect = [](std::string_view text, Sampler sampler,
                         std::optional<Schedule> schedule = std::nullopt) {
    const SamplerChoice choice = parse_sampler(text);
    EXPECT_EQ(choice.sampler, sampler) << text;
    EXPECT_EQ(choice.schedule, schedule) << text;
  };
  expect("k_lcm", Sampler::lcm);
  expect("k_euler_ancestral", Sampler::euler_ancestral);
  expect("K_EULER_A", Sampler::euler_ancestral);
  expect("sample_dpmpp_2s_ancestral", Sampler::dpmpp_2s_ancestral);
  expect("sample_dpm_2", Sampler::dpm2);
  expect("k_dpm_2_ancestral", Sampler::dpm2_ancestral);
  expect("kdpm_2_a", Sampler::dpm2_ancestral);
  expect("KDPM2DiscreteScheduler", Sampler::dpm2);
  expect("k_dpm_ad", Sampler::dpm_adaptive);
  expect("k_restart", Sampler::restart);
  expect("ddim_cfgpp", Sampler::ddim_cfg_pp);
  expect("ddim_v3", Sampler::ddim);
  expect("dpmpp_3m_sde_gpu", Sampler::dpmpp_3m_sde);
  expect("dpm++2m", Sampler::dpmpp_2m);
  expect("uni_pc_bh2", Sampler::unipc);
  expect("k_dpmpp_2m_ka", Sampler::dpmpp_2m, Schedule::karras);
  expect("k_dpmpp_2m_sde_heun_exp", Sampler::dpmpp_2m_sde_heun, Schedule::exponential);
  expect("k_lms_ka", Sampler::lms, Schedule::karras);
  expect("euler_k", Sampler::euler, Schedule::karras);
  expect("DPM++ 2M SGM Uniform", Sampler::dpmpp_2m, Schedule::sgm_uniform);
  expect("ddim_trailing", Sampler::ddim, Schedule::trailing);
  EXPECT_EQ(parse_schedule("SGMUniform"), Schedule::sgm_uniform);
  EXPECT_EQ(parse_schedule("kl_optimal"), Schedule::kl_optimal);
  EXPECT_EQ(parse_schedule("ddim"), Schedule::ddim_uniform);
  for (const char* unknown : {"k_", "k", "sample_", "dpm++2mv2", "k_karras"}) {
    harness::expect_error("sampler", unknown, "none of", [&] { parse_sampler(unknown); });
  }
}

}  // namespace
}  // namespace rbee::diffusion
