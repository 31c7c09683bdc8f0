// The meaning of fields of AUTOMATIC1111's API, and refused fields.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "rbee/io/image/base64.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/image/png.h"
#include "tests/server/image_worker.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kText = "/sdapi/v1/txt2img";

void expect_taken(const ImageWorker& worker, const json& body, const char* path = kText) {
  const RawResponse answer = worker.post(path, body.dump());
  EXPECT_EQ(answer.status, 200) << body << answer.body;
}

void expect_refused(const ImageWorker& worker, const json& body, std::string_view name,
                    const char* path = kText) {
  const RawResponse answer = worker.post(path, body.dump());
  EXPECT_EQ(answer.status, 400) << body;
  EXPECT_THAT(error_of(answer), HasSubstr(std::string(name)));
}

// Those that the request has, and what it would pass over though it asks for another picture.
TEST(SdapiFields, MessagesNameTheFieldsOfTheirApi) {
  ImageWorker worker;
  const json none = {{"prompt", "x"}, {"init_images", {"!"}}};
  const std::string fine = io::encode_base64("picture");
  json mask = none;
  mask["init_images"][0] = fine;
  json twice = mask;
  mask["mask"] = "!";
  twice["enable_hr"] = true;
  constexpr const char* kPicture = "/sdapi/v1/img2img";
  expect_refused(worker, none, "init_images: character 0 is not base64", kPicture);
  expect_refused(worker, mask, "mask: character 0 is not base64", kPicture);
  expect_refused(worker, twice, "enable_hr must be one of", kPicture);
  twice["enable_hr"] = false;
  expect_taken(worker, twice, kPicture);
  json edit = {{"prompt", "x"}, {"image", "!"}};
  expect_refused(worker, edit, "image: character 0 is not base64", "/v1/images/edits");
  json job = {{"prompt", "x"}, {"operation", "image_transform"}, {"input_image", "!"}};
  expect_refused(worker, job, "input_image: character 0 is not base64", "/v1/jobs");
}

TEST(SdapiFields, ScriptsAreKnownInAnyCase) {
  ImageWorker worker;
  const json unit = {{"image", io::encode_base64("edges")}, {"model", "canny [d14c016b]"}};
  for (const char* name : {"controlnet", "ControlNet", "CONTROLNET"}) {
    expect_taken(worker, {{"alwayson_scripts", {{name, {{"args", {unit}}}}}}});
    ASSERT_EQ(worker.engine.last_request().controls.size(), 1u) << name;
    EXPECT_EQ(worker.engine.last_request().controls[0].name, "canny");
  }
  json balanced = unit;
  balanced.update({{"control_mode", "Balanced"}, {"mask", nullptr}, {"hr_option", "Both"}});
  expect_taken(worker, {{"alwayson_scripts", {{"ControlNet", {{"args", {balanced}}}}}}});
  balanced["control_mode"] = "ControlNet is more important";
  expect_refused(worker, {{"alwayson_scripts", {{"ControlNet", {{"args", {balanced}}}}}}},
                 "control_mode");
  balanced["enabled"] = false;
  expect_taken(worker, {{"alwayson_scripts", {{"ControlNet", {{"args", {balanced}}}}}}});
  EXPECT_TRUE(worker.engine.last_request().controls.empty());
}

TEST(SdapiFields, ControlPicturesMayStandBesideAMask) {
  ImageWorker worker;
  const auto with = [](const json& image) {
    return json{{"alwayson_scripts", {{"controlnet", {{"args", {{{"image", image}}}}}}}}};
  };
  const std::string edges = io::encode_base64("edges");
  for (const json& mask : {json(), json("")}) {
    expect_taken(worker, with({{"image", edges}, {"mask", mask}}));
    EXPECT_EQ(worker.engine.last_request().controls.at(0).image, "edges");
  }
  expect_refused(worker, with({{"image", edges}, {"mask", edges}}), "args[0].image.mask");
  for (const json& image : {json::object(), json{{"image", 5}}, json{{"image", ""}}}) {
    expect_refused(worker, with(image), "args[0].image.image");
  }
}

// As in pydantic, which AUTOMATIC1111 uses for the fields that it declares.
TEST(SdapiFields, TextsStandForNumbersAndTruthValues) {
  ImageWorker worker;
  expect_taken(worker, {{"steps", " 12 "},
                        {"cfg_scale", "6.5"},
                        {"seed", "18446744073709551615"},
                        {"width", "128.0"},
                        {"batch_size", "1"},
                        {"restore_faces", "False"},
                        {"tiling", "on"},
                        {"enable_hr", "no"},
                        {"send_images", "1"}});
  const engine::ImageRequest sent = worker.engine.last_request();
  EXPECT_EQ(sent.steps, 12);
  EXPECT_EQ(sent.guidance_scale, 6.5f);
  EXPECT_EQ(sent.seed, 18446744073709551615u);
  EXPECT_EQ(sent.width, 128);
  EXPECT_EQ(sent.tiling, engine::Tiling::both);
  expect_taken(worker, {{"seed", "-1"}, {"tiling", "x"}, {"steps", "+3"}});
  EXPECT_FALSE(worker.engine.last_request().seed);
  EXPECT_EQ(worker.engine.last_request().tiling, engine::Tiling::x);
  for (const json& wrong :
       {json{{"steps", "twelve"}}, json{{"steps", ""}}, json{{"steps", "151"}},
        json{{"steps", true}}, json{{"cfg_scale", "nan"}}, json{{"cfg_scale", "1e999"}},
        json{{"restore_faces", "yes"}}, json{{"enable_hr", "perhaps"}}, json{{"enable_hr", 2}},
        json{{"width", {"64"}}}}) {
    expect_refused(worker, wrong, wrong.begin().key());
  }
  const json none = {{"image", ""}, {"upscaling_resize", "x"}};
  expect_refused(worker, none, "upscaling_resize", "/sdapi/v1/extra-single-image");
}

TEST(SdapiFields, TextsStandForNumbersInOptions) {
  ImageWorker worker;
  const auto with = [](const json& options) { return json{{"override_settings", options}}; };
  expect_taken(worker, with({{"CLIP_stop_at_last_layers", "2"},
                             {"eta_noise_seed_delta", "31337"},
                             {"s_churn", "0.5"},
                             {"token_merging_ratio", "0.0"},
                             {"img2img_color_correction", "false"},
                             {"img2img_fix_steps", 1},
                             {"samples_format", "jpg"},
                             {"jpeg_quality", "70"}}));
  const engine::ImageRequest sent = worker.engine.last_request();
  EXPECT_EQ(sent.clip_skip, 2);
  EXPECT_EQ(sent.seed_delta, 31337);
  EXPECT_EQ(sent.added_noise.churn, 0.5f);
  EXPECT_EQ(sent.strength_rule, engine::StrengthRule::all);
  EXPECT_EQ(sent.encoding.quality, 70);
  for (const json& option :
       {json{{"CLIP_stop_at_last_layers", "two"}}, json{{"CLIP_stop_at_last_layers", "13"}},
        json{{"token_merging_ratio", "0.5"}}, json{{"img2img_color_correction", "true"}}}) {
    expect_refused(worker, with(option), "override_settings." + option.begin().key());
  }
  const auto refuses = [&](const json& options) {
    return worker.post("/sdapi/v1/options", options.dump()).status == 400;
  };
  EXPECT_FALSE(refuses({{"CLIP_stop_at_last_layers", "1"}, {"s_noise", "1.0"}}));
  EXPECT_TRUE(refuses({{"CLIP_stop_at_last_layers", "2"}}));
}

TEST(SdapiFields, TextsStandForNumbersInControlUnits) {
  ImageWorker worker;
  const auto with = [](json unit) {
    unit["image"] = io::encode_base64("edges");
    return json{{"alwayson_scripts", {{"controlnet", {{"args", {unit}}}}}}};
  };
  expect_taken(worker, with({{"enabled", "true"},
                             {"weight", "0.5"},
                             {"guidance_end", "0.75"},
                             {"resize_mode", "2"},
                             {"control_mode", "0"}}));
  const engine::ControlUse sent = worker.engine.last_request().controls.at(0);
  EXPECT_EQ(sent.scale, 0.5f);
  EXPECT_EQ(sent.finish, 0.75f);
  EXPECT_EQ(sent.fit, engine::Fit::fill);
  expect_taken(worker, with({{"enabled", "off"}}));
  EXPECT_TRUE(worker.engine.last_request().controls.empty());
  expect_refused(worker, with({{"weight", "heavy"}}), "args[0].weight");
}

TEST(SdapiFields, StylesWithoutNameAreNone) {
  ImageWorker worker;
  for (const json& styles : {json(), json::array(), json{""}, json{"None"}}) {
    expect_taken(worker, {{"styles", styles}});
  }
  expect_refused(worker, {{"styles", {"anime"}}}, "styles");
}

TEST(SdapiFields, ControlPicturesAreFittedAsTheExtensionDoes) {
  ImageWorker worker;
  const json unit = {{"image", io::encode_base64("edges")}};
  const auto with = [](json one, const json& more) {
    one.update(more);
    return json{{"alwayson_scripts", {{"controlnet", {{"args", {one}}}}}}};
  };
  struct Case {
    json mode;
    engine::Fit fit;
  };
  using enum engine::Fit;
  for (const Case& each :
       {Case{nullptr, crop}, Case{0, stretch}, Case{1, crop}, Case{2, fill},
        Case{"Just Resize", stretch}, Case{"Crop and Resize", crop}, Case{"Resize and Fill", fill},
        Case{"ResizeMode.OUTER_FIT", fill}, Case{"Scale to Fit (Inner Fit)", crop}}) {
    expect_taken(worker, with(unit, {{"resize_mode", each.mode}}));
    EXPECT_EQ(worker.engine.last_request().controls.at(0).fit, each.fit) << each.mode;
  }
  for (const json& mode : {json(3), json("Zoom"), json(true)}) {
    expect_refused(worker, with(unit, {{"resize_mode", mode}}), "args[0].resize_mode");
  }
  // A unit without its own picture uses img2img's, resized as there.
  json body = with(json::object(), {{"weight", 1}});
  expect_refused(worker, body, "args[0].image");
  body["init_images"] = {io::encode_base64("photograph")};
  body["resize_mode"] = 2;
  expect_taken(worker, body, "/sdapi/v1/img2img");
  EXPECT_EQ(worker.engine.last_request().controls.at(0).image, "photograph");
  EXPECT_EQ(worker.engine.last_request().controls.at(0).fit, fill);
}

TEST(SdapiFields, ScriptsThatAreNotThereAreRefused) {
  ImageWorker worker;
  for (const char* name : {"ADetailer", "Dynamic Prompts v2.17.1", "controlnet2", ""}) {
    const json body = {{"alwayson_scripts", {{name, {{"args", {true}}}}}}};
    const RawResponse answer = worker.post(kText, body.dump());
    EXPECT_EQ(answer.status, 422) << name;
    EXPECT_THAT(error_of(answer),
                HasSubstr("always on script " + std::string(name) + " not found"));
  }
  expect_taken(worker, {{"alwayson_scripts", nullptr}});
  expect_taken(worker, {{"alwayson_scripts", json::object()}});
  // AUTOMATIC1111's own scripts exist, and requests may switch them off.
  for (const json& script :
       {json::object(), json{{"args", nullptr}}, json{{"args", {false, "x"}}}}) {
    expect_taken(worker, {{"alwayson_scripts", {{"Soft Inpainting", script}}}});
  }
  for (const json& script : {json{{"args", {true}}}, json{{"args", "x"}}, json(nullptr)}) {
    const json body = {{"alwayson_scripts", {{"Refiner", script}}}};
    EXPECT_EQ(worker.post(kText, body.dump()).status, 422) << script;
  }
  expect_refused(worker,
                 {{"alwayson_scripts", {{"controlnet", {{"args", {{{"module", "canny"}}}}}}}}},
                 "alwayson_scripts.controlnet.args[0].module");
  expect_refused(worker, {{"alwayson_scripts", {"controlnet"}}}, "alwayson_scripts");
  expect_refused(worker, {{"alwayson_scripts", {{"controlnet", {"x"}}}}}, "controlnet");
}

TEST(SdapiFields, NullIsAbsent) {
  ImageWorker worker;
  json body = json::object();
  for (const char* name : {"prompt",
                           "negative_prompt",
                           "styles",
                           "seed",
                           "subseed",
                           "subseed_strength",
                           "sampler_name",
                           "sampler_index",
                           "scheduler",
                           "batch_size",
                           "n_iter",
                           "steps",
                           "cfg_scale",
                           "width",
                           "height",
                           "restore_faces",
                           "tiling",
                           "eta",
                           "s_churn",
                           "s_min_uncond",
                           "firstpass_image",
                           "infotext",
                           "override_settings",
                           "alwayson_scripts",
                           "script_name",
                           "enable_hr",
                           "hr_scale",
                           "hr_upscaler",
                           "hr_resize_x",
                           "send_images",
                           "refiner_checkpoint",
                           "denoising_strength"}) {
    body[name] = nullptr;
  }
  expect_taken(worker, body);
  EXPECT_EQ(worker.engine.last_request().prompt, "");
  body["init_images"] = {io::encode_base64("picture")};
  for (const char* name : {"mask", "mask_blur", "mask_blur_x", "mask_round", "latent_mask",
                           "inpainting_fill", "inpaint_full_res", "initial_noise_multiplier"}) {
    body[name] = nullptr;
  }
  expect_taken(worker, body, "/sdapi/v1/img2img");
  const json openai = {{"prompt", nullptr}};
  EXPECT_EQ(worker.post("/v1/images/generations", openai.dump()).status, 400);
}

TEST(SdapiFields, WhatWouldChangeAPictureIsRefusedByName) {
  ImageWorker worker;
  expect_taken(worker, {{"s_min_uncond", 0},
                        {"disable_extra_networks", false},
                        {"firstpass_image", ""},
                        {"script_name", "None"},
                        {"script_args", {1}},
                        {"firstphase_width", 64},
                        {"save_images", true},
                        {"comments", {{"a", 1}}}});
  for (const json& more : {json{{"s_min_uncond", 0.5}}, json{{"disable_extra_networks", true}},
                           json{{"firstpass_image", "aaaa"}}, json{{"infotext", "Steps: 3"}},
                           json{{"latent_mask", "aaaa"}}, json{{"mask_round", false}}}) {
    expect_refused(worker, more, more.begin().key());
  }
  expect_refused(worker, {{"enable_hr", true}, {"firstphase_width", 64}}, "firstphase_width");
  expect_taken(worker, {{"enable_hr", true},
                        {"prompt", "a"},
                        {"hr_prompt", "a"},
                        {"sampler_name", "Euler"},
                        {"hr_sampler_name", "Euler"}});
}

TEST(SdapiFields, OverridesAreHonouredOrRefused) {
  ImageWorker worker;
  const auto with = [](const json& options) { return json{{"override_settings", options}}; };
  expect_taken(worker, with({{"sd_vae", "Automatic"},
                             {"token_merging_ratio", 0.0},
                             {"uni_pc_order", 3},
                             {"live_previews_enable", true},
                             {"return_grid", false},
                             {"sd_vae_encode_method", nullptr}}));
  for (const json& option :
       {json{{"sd_vae", "ft-mse.safetensors"}}, json{{"token_merging_ratio", 0.5}},
        json{{"img2img_color_correction", true}}, json{{"sd_hypernetwork", "anime"}},
        json{{"emphasis", "Loud"}}, json{{"randn_source", "TPU"}},
        json{{"use_old_emphasis_implementation", true}}, json{{"tiling", true}}}) {
    expect_refused(worker, with(option), "override_settings." + option.begin().key());
  }
  expect_refused(worker, with({1}), "override_settings");
  expect_taken(worker, with({{"randn_source", "CPU"},
                             {"emphasis", "None"},
                             {"eta_ancestral", 0.5},
                             {"k_sched_type", "karras"},
                             {"img2img_fix_steps", true}}));
  const engine::ImageRequest sent = worker.engine.last_request();
  EXPECT_EQ(sent.noise_source, engine::NoiseSource::torch);
  EXPECT_EQ(sent.prompt_rule, engine::PromptRule::none);
  EXPECT_EQ(sent.eta, 0.5f);
  EXPECT_EQ(sent.schedule, "karras");
  EXPECT_EQ(sent.strength_rule, engine::StrengthRule::all);
  json ddim = with({{"eta_ancestral", 0.5}, {"eta_ddim", 0.25}});
  ddim["sampler_name"] = "DDIM";
  expect_taken(worker, ddim);
  EXPECT_EQ(worker.engine.last_request().eta, 0.25f);
}

TEST(SdapiFields, EmphasisIsAsAskedFor) {
  ImageWorker worker;
  for (const auto& [word, emphasis] : {std::pair{"Original", engine::Emphasis::original},
                                       std::pair{"No norm", engine::Emphasis::no_norm},
                                       std::pair{"Ignore", engine::Emphasis::ignore}}) {
    expect_taken(worker, {{"override_settings", {{"emphasis", word}}}});
    EXPECT_EQ(worker.engine.last_request().emphasis, emphasis) << word;
    EXPECT_EQ(worker.engine.last_request().prompt_rule, engine::PromptRule::a1111) << word;
  }
}

TEST(SdapiFields, CommentsAreTakenOutOfPrompts) {
  ImageWorker worker;
  const auto prompt_of = [&](const json& body) {
    expect_taken(worker, body);
    return worker.engine.last_request().prompt;
  };
  EXPECT_EQ(prompt_of({{"prompt", "a dog # cat"}}), "a dog ");
  EXPECT_EQ(prompt_of({{"prompt", "# all\na dog, #x\n#y\n\nred"}}), "a dog, \n\nred");
  EXPECT_EQ(prompt_of({{"prompt", "#"}}), "");
  EXPECT_EQ(
      prompt_of({{"prompt", "a #1"}, {"override_settings", {{"enable_prompt_comments", false}}}}),
      "a #1");
  expect_taken(worker, {{"negative_prompt", "blurry#x"}});
  EXPECT_EQ(worker.engine.last_request().negative_prompt, "blurry");
  const json openai = {{"prompt", "a #1"}};
  EXPECT_EQ(worker.post("/v1/images/generations", openai.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().prompt, "a #1");
}

TEST(SdapiFields, SecondPassesHaveWhatTheFirstHas) {
  ImageWorker worker;
  const json hires = {{"enable_hr", 1}, {"cfg_scale", 7}};
  const auto with = [&](const json& more) {
    json body = hires;
    body.update(more);
    return body;
  };
  expect_taken(worker, with({{"hr_cfg", 7.0},
                             {"hr_checkpoint_name", "fake-pictures.safetensors [0123456789]"},
                             {"hr_additional_modules", {"Use same choices"}}}));
  expect_taken(worker, with({{"hr_checkpoint_name", "Use same checkpoint"}}));
  EXPECT_TRUE(worker.engine.last_request().hires.has_value());
  for (const json& more :
       {json{{"hr_cfg", 3}}, json{{"hr_distilled_cfg", 3}}, json{{"hr_checkpoint_name", "another"}},
        json{{"hr_additional_modules", {"ae"}}}}) {
    expect_refused(worker, with(more), more.begin().key());
  }
  const RawResponse once = worker.post(kText, with({{"denoising_strength", 2}}).dump());
  EXPECT_EQ(error_of(once), "denoising_strength must be from 0 to 1");
}

// Forge sends both; FLUX was trained with the second and has no negative prompt for the first.
TEST(SdapiFields, DistilledGuidanceIsThatOfModelsWithoutAnother) {
  ImageWorker other, flux({.architecture = "flux"});
  const json sent = {{"cfg_scale", 1}, {"distilled_cfg_scale", 3.5}};
  expect_taken(other, sent);
  EXPECT_EQ(other.engine.last_request().guidance_scale, 1);
  expect_taken(flux, sent);
  EXPECT_EQ(flux.engine.last_request().guidance_scale, 3.5f);
  expect_taken(flux, {{"cfg_scale", 2.5}});
  EXPECT_EQ(flux.engine.last_request().guidance_scale, 2.5f);
  const json both = {{"cfg_scale", 7}, {"distilled_cfg_scale", 3.5}};
  const RawResponse refused = flux.post(kText, both.dump());
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(error_of(refused), HasSubstr("cfg_scale"));
  expect_refused(other, {{"distilled_cfg_scale", 31}}, "distilled_cfg_scale");
}

TEST(SdapiFields, OptionsThatWouldChangePicturesAreRefused) {
  ImageWorker worker;
  constexpr const char* kOptions = "/sdapi/v1/options";
  expect_taken(worker, {{"sd_model_checkpoint", "fake-pictures"}}, kOptions);
  expect_taken(
      worker,
      {{"CLIP_stop_at_last_layers", 1}, {"sd_vae", "Automatic"}, {"show_progressbar", true}},
      kOptions);
  for (const json& option :
       {json{{"sd_model_checkpoint", "another"}}, json{{"CLIP_stop_at_last_layers", 2}},
        json{{"sd_vae", "ft-mse.safetensors"}}, json{{"randn_source", "CPU"}},
        json{{"samples_format", "jpg"}}, json{{"eta_noise_seed_delta", 31337}}}) {
    expect_refused(worker, option, option.begin().key(), kOptions);
  }
}

TEST(Sdapi, PngInfoReadsSettings) {
  ImageWorker worker;
  const io::Pixels pixels{.width = 1, .height = 1, .channels = 3, .values = {1, 2, 3}};
  const std::string text =
      "a cat\nNegative prompt: dog\nSteps: 9, Sampler: Euler a, Schedule type: Karras, "
      "CFG scale: 6.5, Seed: 12, Size: 64x72";
  const auto ask_for = [&](const std::string& png) {
    const json body = {{"image", "data:image/png;base64," + io::encode_base64(png)}};
    return worker.post("/sdapi/v1/png-info", body.dump());
  };
  const json found = json::parse(ask_for(io::encode_png(pixels, {{"parameters", text}})).body);
  EXPECT_EQ(found.at("info"), text);
  const json& parameters = found.at("parameters");
  EXPECT_EQ(parameters.at("Prompt"), "a cat");
  EXPECT_EQ(parameters.at("Negative prompt"), "dog");
  EXPECT_EQ(parameters.at("Steps"), "9");
  EXPECT_EQ(parameters.at("Sampler"), "Euler a");
  EXPECT_EQ(parameters.at("Schedule type"), "Karras");
  EXPECT_EQ(parameters.at("CFG scale"), "6.5");
  EXPECT_EQ(parameters.at("Seed"), "12");
  EXPECT_EQ(parameters.at("Size-2"), "72");
  const io::Encoding webp{io::ImageFormat::webp};
  EXPECT_EQ(json::parse(ask_for(io::encode_image(pixels, webp, text)).body).at("info"), text);
  const json nothing = json::parse(ask_for(io::encode_png(pixels)).body);
  EXPECT_EQ(nothing.at("info"), "");
  EXPECT_TRUE(nothing.at("parameters").empty());
  for (const char* none : {"no picture", "II*"}) {
    const RawResponse refused = ask_for(none);
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("image: its "));
  }
  const std::string odd =
      "x\nSteps: 20.0, Seed: -1, Variation seed: -1, Size: 512 x 512, CFG scale: many, Own: 1";
  const RawResponse answer = ask_for(io::encode_png(pixels, {{"parameters", odd}}));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json all = json::parse(answer.body);
  EXPECT_EQ(all.at("info"), odd);
  EXPECT_EQ(all.at("parameters"), (json{{"Prompt", "x"},
                                        {"Negative prompt", ""},
                                        {"Steps", "20.0"},
                                        {"Seed", "-1"},
                                        {"Variation seed", "-1"},
                                        {"Size", "512 x 512"},
                                        {"CFG scale", "many"},
                                        {"Own", "1"}}));
}

}  // namespace
}  // namespace rbee::testing
