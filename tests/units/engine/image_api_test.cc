#include "rbee/engine/api/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rbee/core/log.h"
#include "rbee/diffusion/names.h"
#include "rbee/engine/api/image_loras.h"
#include "rbee/engine/api/image_parameters.h"
#include "rbee/engine/image/settings.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using testing::Contains;
using testing::Field;

TEST(ImageApi, ListsWhatItUnderstands) {
  EXPECT_THAT(sampler_choices(), Contains(Field(&NamedChoice::name, "DPM++ 2M SDE")));
  EXPECT_THAT(schedule_choices(), Contains(Field(&NamedChoice::name, "Karras")));
  EXPECT_EQ(sampler_choices().size(), diffusion::sampler_names().size());
  EXPECT_EQ(schedule_choices().size(), diffusion::schedule_names().size());
}

// More characters than an Exif block holds, in few tokens.
TEST(ImageApi, SettingsThatNoFileHoldsAreWarnedOf) {
  ImageRequest request{.job_id = "long"};
  request.prompt = "a" + std::string(40000, ' ') + "cat";
  request.steps = 1;
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel, std::string_view text, auto) { warnings.emplace_back(text); },
               LogLevel::warn);
  for (const auto format : {io::ImageFormat::png, io::ImageFormat::jpeg}) {
    request.encoding.format = format;
    const auto sink = std::make_shared<ImageRecorder>();
    const auto engine = make_image_engine(fake_source(half_noise), {.warm_up = false});
    engine->submit(request, sink);
    ASSERT_TRUE(sink->wait());
    ASSERT_EQ(sink->images.size(), 1u);
    EXPECT_EQ(warnings.size(), format == io::ImageFormat::jpeg ? 1u : 0u);
  }
  set_log_sink(nullptr, LogLevel::error);
  EXPECT_THAT(warnings, Contains(testing::HasSubstr("settings are too long")));
}

// Another solver than the model's own would draw a picture that was not requested.
TEST(ImageApi, SettingsOfTheModelsSamplerThatAreNotComputedAreRefused) {
  ImageSource source = fake_source(half_noise);
  source.scheduler.ignored = {"solver_order 3"};
  ImageRequest request;
  try {
    resolve(source, request);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("solver_order 3; name a sampler"));
  }
  request.sampler = "Euler";
  EXPECT_NO_THROW(resolve(source, request));
}

TEST(ImageApi, ChecksRangesByField) {
  const auto refused = [](const char* field, const char* what, auto&& change) {
    ImageRequest request;
    change(request);
    harness::expect_error(field, what, "", [&] { validate(request); });
  };
  EXPECT_NO_THROW(validate({}));
  refused("clip_skip", "0 to 12", [](ImageRequest& r) { r.clip_skip = 13; });
  refused("eta", "0 to 1", [](ImageRequest& r) { r.eta = -0.1f; });
  refused("guidance_rescale", "0 to 1", [](ImageRequest& r) { r.guidance_rescale = 2; });
  refused("mask_blur", "0 to 64", [](ImageRequest& r) { r.mask_blur = 65; });
  refused("hires.scale", "1 to 4", [](ImageRequest& r) { r.hires = HiresFix{.scale = 5}; });
  refused("loras.strength", "-10 to 10", [](ImageRequest& r) { r.loras = {{"x", 11}}; });
  refused("eta_noise_seed_delta", "0 to", [](ImageRequest& r) { r.seed_delta = -1; });
  refused("seed_resize_from_h", "8 to 2048", [](ImageRequest& r) { r.seed_width = 512; });
  refused("s_churn", "0 to 100", [](ImageRequest& r) { r.added_noise.churn = 101; });
  refused("s_tmin", "0 to 1000", [](ImageRequest& r) { r.added_noise.tmin = -1; });
  refused("s_tmax", "0 to 1000", [](ImageRequest& r) { r.added_noise.tmax = NAN; });
  refused("s_noise", "0 to 2", [](ImageRequest& r) { r.added_noise.noise = 2.1f; });
  refused("prompt", "65536", [](ImageRequest& r) { r.prompt.assign(70000, 'x'); });
}

TEST(PromptLoras, AreTakenOutOfPrompts) {
  const PromptLoras split = split_loras(
      "<LoRA:a/b>a <b> <lora: c d :-0.5>cat<lyco:e:2><wildcard:x:1><:y><-:z><lora:open");
  EXPECT_EQ(split.prompt, "a <b> cat<:y><-:z><lora:open");
  ASSERT_EQ(split.loras.size(), 3u);
  EXPECT_EQ(split.loras[0].path, "a/b");
  EXPECT_EQ(split.loras[0].strength, 1);
  EXPECT_EQ(split.loras[1].path, "c d");
  EXPECT_EQ(split.loras[1].strength, -0.5f);
  EXPECT_EQ(split.loras[2].path, "e");
  EXPECT_EQ(split.loras[2].strength, 2);
  EXPECT_FALSE(split.loras[1].text_strength);
}

// As AUTOMATIC1111's extra_networks_lora.py reads them.
TEST(PromptLoras, MayHaveTwoStrengths) {
  struct Case {
    const char* tag;
    float text, unet;
  };
  constexpr Case kCases[] = {{"<lora:a>", 1, 1},
                             {"<lora:a:0.5:0.75>", 0.5f, 0.75f},
                             {"<lora:a:te=0.5:unet=2>", 0.5f, 2},
                             {"<lora:a: te = 0.5 >", 0.5f, 0.5f},
                             {"<lora:a:unet=-2>", 1, -2},
                             {"<lora:a:0.5:unet=0>", 0.5f, 0},
                             {"<lora:a:0.5:te=0.25>", 0.25f, 0.25f},
                             {"<lora:a:unet=2:0.5>", 0.5f, 2}};
  for (const Case& each : kCases) {
    const LoraUse use = split_loras(each.tag).loras.at(0);
    EXPECT_EQ(use.path, "a") << each.tag;
    EXPECT_EQ(use.strength, each.unet) << each.tag;
    EXPECT_EQ(use.text_strength.value_or(use.strength), each.text) << each.tag;
  }
}

TEST(PromptLoras, SayWhatIsWrongWithThem) {
  for (const char* tag :
       {"<lora:>", "<lora: :1>", "<lora:a:>", "<lora:a:x>", "<lora:a:1:>", "<lora:a:te=x>"}) {
    harness::expect_error("prompt", tag, "", [&] { split_loras(tag); });
  }
  harness::expect_error("prompt", "<lora:a:b:1>", "goes by the field loras",
                        [] { split_loras("<lora:a:b:1>"); });
  EXPECT_TRUE(fits_tag("a (b), c"));
  for (const char* name : {"a:b", "a>b", "a<b", "a\nb"}) EXPECT_FALSE(fits_tag(name)) << name;
  for (const char* tag : {"<lora:a:1:2:8>", "<lora:a:dyn=8>", "<hypernet:a:1>"}) {
    try {
      split_loras(tag);
      ADD_FAILURE() << tag;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported) << error.what();
    }
  }
  ImageRequest request;
  request.prompt = "<lora:a:11>";
  harness::expect_error("loras.strength", "11", "", [&] { validate(request); });
  request.prompt = "<lora:a:-11:1>";
  harness::expect_error("loras.text_strength", "-11", "", [&] { validate(request); });
  request.prompt_rule = PromptRule::none;
  EXPECT_NO_THROW(validate(request));
  EXPECT_EQ(prompt_loras(request).prompt, request.prompt);
}

TEST(Parameters, AreReadBack) {
  const ImageRequest request = parse_parameters(
      "a cat,\nNegative prompts are odd: yes\nNegative prompt: dog,\nblurry\nSteps: 30, Sampler: "
      "DPM++ 2M, Schedule type: Karras, CFG scale: 6.5, Seed: 18446744073709551615, Size: 640x448, "
      "Model: some, RNG: CPU, Clip skip: 2, Lora hashes: \"a: 1, Steps: 3\", Eta: 0.5, Version: "
      "v1.10");
  EXPECT_EQ(request.prompt, "a cat,\nNegative prompts are odd: yes");
  EXPECT_EQ(request.negative_prompt, "dog,\nblurry");
  EXPECT_EQ(request.steps, 30);
  EXPECT_EQ(request.sampler, "DPM++ 2M");
  EXPECT_EQ(request.schedule, "Karras");
  EXPECT_EQ(request.guidance_scale, 6.5f);
  EXPECT_EQ(request.seed, UINT64_MAX);
  EXPECT_EQ(request.width, 640);
  EXPECT_EQ(request.height, 448);
  EXPECT_EQ(request.noise_source, NoiseSource::torch);
  EXPECT_EQ(request.clip_skip, 2);
  EXPECT_EQ(request.eta, 0.5f);
  EXPECT_FALSE(request.hires);
}

// Keys in A1111's own files.
TEST(Parameters, OfAddedNoiseAreReadBack) {
  const ImageRequest request = parse_parameters(
      "a\nSteps: 4, Seed resize from: 512x768, ENSD: 31337, Sigma churn: 3.5, Sigma tmin: 0.1, "
      "Sigma tmax: 9, Sigma noise: 1.01");
  EXPECT_EQ(request.seed_width, 512);
  EXPECT_EQ(request.seed_height, 768);
  EXPECT_EQ(request.width, 0);
  EXPECT_EQ(request.seed_delta, 31337);
  EXPECT_EQ(request.tiling, Tiling::none);
  EXPECT_EQ(parse_parameters("Steps: 1, Tiling: True").tiling, Tiling::both);
  EXPECT_EQ(parse_parameters("Steps: 1, Tiling: Y").tiling, Tiling::y);
  EXPECT_EQ(request.added_noise.churn, 3.5f);
  EXPECT_EQ(request.added_noise.tmin, 0.1f);
  EXPECT_EQ(request.added_noise.tmax, 9);
  EXPECT_EQ(request.added_noise.noise, 1.01f);
}

TEST(Parameters, OfSecondPassesGiveItTheStrength) {
  const ImageRequest request = parse_parameters(
      "Negative prompt: dog\nSteps: 4, Denoising strength: 0.4, Hires upscale: 1.5, Hires steps: "
      "8, Hires upscaler: Lanczos");
  EXPECT_EQ(request.prompt, "");
  EXPECT_EQ(request.negative_prompt, "dog");
  ASSERT_TRUE(request.hires);
  EXPECT_EQ(request.hires->strength, 0.4f);
  EXPECT_EQ(request.hires->scale, 1.5f);
  EXPECT_EQ(request.hires->steps, 8);
  EXPECT_EQ(request.hires->upscaler, "Lanczos");
  EXPECT_EQ(request.strength_rule, StrengthRule::a1111);
  EXPECT_EQ(request.noise_source, NoiseSource::philox);
}

TEST(Parameters, OfTwoPassesGiveEachItsStrength) {
  const ImageRequest request = parse_parameters(
      "Steps: 4, Denoising strength: 0.8, Hires denoising strength: 0.3, Hires upscale: 1.5");
  EXPECT_EQ(request.strength, 0.8f);
  ASSERT_TRUE(request.hires);
  EXPECT_EQ(request.hires->strength, 0.3f);
}

// AUTOMATIC1111's note of a CPU generator says nothing about steps.
TEST(Parameters, OfAutomatic1111HaveItsStrengthRule) {
  const auto rule = [](const char* text) { return parse_parameters(text).strength_rule; };
  EXPECT_EQ(rule("Steps: 4, RNG: CPU, Version: v1.10.1"), StrengthRule::a1111);
  EXPECT_EQ(rule("Steps: 4, RNG: CPU, Hires upscale: 2"), StrengthRule::a1111);
  EXPECT_EQ(rule("Steps: 4, RNG: CPU, Version: rbee.cpp"), StrengthRule::part);
  EXPECT_EQ(rule("Steps: 4, RNG: NV, Version: rbee.cpp"), StrengthRule::a1111);
  EXPECT_EQ(rule("Steps: 4, RNG: CPU, Strength rule: All, Version: rbee.cpp"), StrengthRule::all);
}

TEST(Parameters, AreTakenOutOfQuotes) {
  const ImageRequest request = parse_parameters(
      R"(Steps: 4, Hires upscale: 2, Hires upscaler: "sharp, \"wide\": \\4\n", Seed: 7)");
  ASSERT_TRUE(request.hires);
  EXPECT_EQ(request.hires->upscaler, "sharp, \"wide\": \\4\n");
  EXPECT_EQ(request.seed, 7u);
  EXPECT_EQ(parse_parameters("Steps: 4, Hires upscaler: \"open").hires->upscaler, "\"open");
}

TEST(Parameters, OfAnyTextAreAPrompt) {
  EXPECT_EQ(parse_parameters("just words").prompt, "just words");
  EXPECT_EQ(parse_parameters("").prompt, "");
  EXPECT_EQ(parse_parameters("Steps: 3").steps, 3);
  EXPECT_EQ(parse_parameters("Steps: 3, broken").steps, 3);
  EXPECT_EQ(parse_parameters("a: b, c: d").prompt, "a: b, c: d");
}

TEST(Parameters, OfOddValuesAreUsedAsFarAsTheyCanBe) {
  std::vector<std::string> unused;
  const ImageRequest request = parse_parameters(
      "a\nSteps: 20.0, Sampler: magic, Seed: -1, Variation seed: -1, Size: 512 x 640, CFG scale: "
      "many, Clip skip: 40, Face restoration: CodeFormer, Model hash: 12ab, Denoising strength: "
      "2, Hires upscale: 1.5, Hires steps: -3, Version: v1.10.1",
      &unused);
  EXPECT_EQ(request.steps, 20);
  EXPECT_EQ(request.width, 512);
  EXPECT_EQ(request.height, 640);
  EXPECT_FALSE(request.seed);
  EXPECT_FALSE(request.variation.seed);
  EXPECT_FALSE(request.guidance_scale);
  EXPECT_EQ(request.sampler, "");
  EXPECT_EQ(request.clip_skip, 0);
  ASSERT_TRUE(request.hires);
  EXPECT_EQ(request.hires->steps, 0);
  EXPECT_THAT(unused, testing::ElementsAre("Sampler: magic", "CFG scale: many", "Clip skip: 40",
                                           "Face restoration: CodeFormer", "Denoising strength: 2",
                                           "Hires steps: -3"));
  EXPECT_EQ(parse_parameters("Steps: 3, Size: 512").width, 0);
  EXPECT_EQ(parse_parameters("Steps: 3, Size: 513x512").width, 0);
  EXPECT_EQ(parse_parameters("Steps: 3, Seed: 1e3").seed, 1000u);
}

// A1111 reads the last line, accepts any line ends, and skips text that is not a field.
TEST(Parameters, AreFoundInAnyText) {
  const ImageRequest request = parse_parameters(
      "Steps: of a ladder,\r\nby day\r\nNegative prompt:dog,\r\nfog\r\nSteps: 7, odd, Seed: 5, "
      "Sampler: Euler, Steps: 8\r\n");
  EXPECT_EQ(request.prompt, "Steps: of a ladder,\nby day");
  EXPECT_EQ(request.negative_prompt, "dog,\nfog");
  EXPECT_EQ(request.steps, 8);
  EXPECT_EQ(request.seed, 5u);
  const ImageRequest more =
      parse_parameters("a\nSteps: 7, Seed: 5, Sampler: Euler\nTemplate: {a|b}");
  EXPECT_EQ(more.prompt, "a");
  EXPECT_EQ(more.seed, 5u);
}

TEST(Parameters, AreToldAsText) {
  using Field = std::pair<std::string, std::string>;
  EXPECT_THAT(infotext_fields("a\nNegative prompt: b\nSteps: 20.0, Size: 64x72, Lora hashes: "
                              "\"x: 1, y: 2\", Size of it: 512 x 512, Eta: \"open, Eta: 1"),
              testing::ElementsAre(Field{"Prompt", "a"}, Field{"Negative prompt", "b"},
                                   Field{"Steps", "20.0"}, Field{"Size-1", "64"},
                                   Field{"Size-2", "72"}, Field{"Lora hashes", "x: 1, y: 2"},
                                   Field{"Size of it", "512 x 512"}, Field{"Eta", "1"}));
}

// What parse_generation_parameters() of AUTOMATIC1111 gives.
TEST(Parameters, HaveTheTextsOfTheLinesAboveTheSettings) {
  constexpr const char* kSettings = "\nSteps: 20, Sampler: Euler a, CFG scale: 7";
  struct Case {
    const char *text, *prompt, *negative;
  };
  for (const auto& [text, prompt, negative] :
       {Case{"a\nNegative prompt: b\nNegative prompt: c", "a", "b\nc"},
        {"a\nNegative prompt: b\nd\n  Negative prompt:c ", "a", "b\nd\nc"},
        {"  a \n\t b\t\nNegative prompt:   c  \n  d ", "a\nb", "c\nd"},
        {"\n\n a\n\nb", "a\n\nb", ""},
        {"\xE3\x80\x80"
         "a\xC2\xA0\nNegative prompt:\xE3\x80\x80"
         "b",
         "a", "b"},
        {"Negative prompt:\nNegative prompt: b", "", "b"},
        {"a, Negative prompt: b", "a, Negative prompt: b", ""}}) {
    for (const char* settings : {kSettings, ""}) {
      const ImageRequest request = parse_parameters(cat(text, settings));
      EXPECT_EQ(request.prompt, prompt) << text;
      EXPECT_EQ(request.negative_prompt, negative) << text;
    }
  }
  using Field = std::pair<std::string, std::string>;
  EXPECT_THAT(infotext_fields("a\nSteps: 20, Sampler: Euler, Prompt: evil, Negative prompt: worse"),
              testing::ElementsAre(Field{"Prompt", "a"}, Field{"Negative prompt", ""},
                                   Field{"Steps", "20"}, Field{"Sampler", "Euler"}));
}

}  // namespace
}  // namespace rbee::engine
