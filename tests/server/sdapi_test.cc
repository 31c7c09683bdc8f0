// AUTOMATIC1111's paths of the image worker over the wire.

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "server/image/upscale.h"
#include "tests/server/image_worker.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(Sdapi, TextToImageRepeatsTheRequestAndTellsSeeds) {
  ImageWorker worker;
  const RawResponse response = worker.post(
      "/sdapi/v1/txt2img",
      R"({"prompt":"a cat","seed":-1,"n_iter":2,"sampler_name":"Euler a","width":256})");
  ASSERT_EQ(response.status, 200) << response.body;
  const json body = json::parse(response.body);
  EXPECT_THAT(body.at("images"), SizeIs(2));
  EXPECT_EQ(body.at("parameters").at("sampler_name"), "Euler a");
  const json info = json::parse(body.at("info").get<std::string>());
  EXPECT_THAT(info.at("all_seeds"), ElementsAre(42, 43));
  EXPECT_THAT(info.at("infotexts")[0].get<std::string>(), StartsWith("a cat"));
  EXPECT_EQ(worker.engine.last_request().noise_source, engine::NoiseSource::philox);
  EXPECT_FALSE(worker.engine.last_request().seed);
}

TEST(Sdapi, AnswersSayWhatWasAskedForAndHowItWasMade) {
  ImageWorker worker({.parameters = "\nSteps: 4, Sampler: Euler a, CFG scale: 7.3, "
                                    "Variation seed: 9, Variation seed strength: 0.5"});
  json sent = {{"prompt", "a cat"}, {"negative_prompt", "fog"}, {"n_iter", 2}};
  for (const char* path : {"/sdapi/v1/txt2img", "/sdapi/v1/img2img"}) {
    const bool img2img = std::string_view(path).ends_with("img2img");
    if (img2img) sent["init_images"] = {io::encode_base64("picture")};
    const json body = json::parse(worker.post(path, sent.dump()).body);
    json repeated = sent;
    if (img2img) repeated["init_images"] = repeated["mask"] = nullptr;
    EXPECT_EQ(body.at("parameters"), repeated);
    const json info = json::parse(body.at("info").get<std::string>());
    EXPECT_EQ(info.at("prompt"), "a cat");
    EXPECT_EQ(info.at("all_negative_prompts"), (json{"fog", "fog"}));
    EXPECT_EQ(info.at("steps"), 4);
    EXPECT_EQ(info.at("sampler_name"), "Euler a");
    EXPECT_EQ(info.at("cfg_scale"), 7.3);
    EXPECT_EQ(info.at("subseed"), 9);
    EXPECT_EQ(info.at("all_subseeds"), (json{9, 9}));
    EXPECT_EQ(info.at("subseed_strength"), 0.5);
  }
  ImageWorker large({.parameters = "\nSteps: 4, Variation seed: 18446744073709551615"});
  const json answer = json::parse(large.post("/sdapi/v1/txt2img", sent.dump()).body);
  const json seeds = json::parse(answer.at("info").get<std::string>());
  EXPECT_EQ(seeds.at("subseed").dump(), "18446744073709551615");  // nlohmann reads -1 so, too
  EXPECT_EQ(seeds.at("all_subseeds")[1].dump(), "18446744073709551615");
  ImageWorker odd({.parameters = "\nSteps: many"});
  EXPECT_EQ(odd.post("/sdapi/v1/txt2img", sent.dump()).status, 200);
}

TEST(Sdapi, ImageToImageTakesTheFirstPicture) {
  ImageWorker worker;
  const json body = {{"prompt", "x"},
                     {"init_images", json::array({io::encode_base64("picture")})},
                     {"mask", io::encode_base64("mask")},
                     {"inpainting_mask_invert", 1}};
  EXPECT_EQ(worker.post("/sdapi/v1/img2img", body.dump()).status, 200);
  const engine::ImageRequest request = worker.engine.last_request();
  EXPECT_EQ(request.init_image, "picture");
  EXPECT_EQ(request.strength, 0.75f);
  EXPECT_EQ(request.strength_rule, engine::StrengthRule::a1111);
  EXPECT_TRUE(request.init_on_white);
  EXPECT_TRUE(request.mask_opaque);
  EXPECT_TRUE(request.mask_invert);
  EXPECT_EQ(request.mask_fill, engine::MaskFill::surroundings);  // A1111's own defaults
  EXPECT_TRUE(request.mask_only);
  EXPECT_EQ(request.mask_padding, 0);
  EXPECT_EQ(request.mask_blur, 4);
  json other = body;
  other.update({{"inpainting_fill", 2},
                {"inpaint_full_res", false},
                {"inpaint_full_res_padding", 9},
                {"mask_blur", 1}});
  EXPECT_EQ(worker.post("/sdapi/v1/img2img", other.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().mask_fill, engine::MaskFill::noise);
  EXPECT_FALSE(worker.engine.last_request().mask_only);
  EXPECT_EQ(worker.engine.last_request().mask_padding, 9);
  EXPECT_EQ(worker.engine.last_request().mask_blur, 1);
  EXPECT_EQ(worker.post("/sdapi/v1/img2img", R"({"prompt":"x"})").status, 400);
}

// An empty picture would count as none, so the worker would draw something else.
TEST(Sdapi, PicturesWithoutBytesAreRefused) {
  ImageWorker worker;
  const std::string picture = io::encode_base64("picture");
  for (const char* nothing : {" ", "====", "data:image/png;base64,"}) {
    SCOPED_TRACE(nothing);
    json body = {{"prompt", "x"}, {"init_images", {nothing}}};
    EXPECT_THAT(error_of(worker.post("/sdapi/v1/img2img", body.dump())), HasSubstr("init_images:"));
    body = {{"prompt", "x"}, {"init_images", {picture}}, {"mask", nothing}};
    EXPECT_THAT(error_of(worker.post("/sdapi/v1/img2img", body.dump())), HasSubstr("mask:"));
  }
}

TEST(Sdapi, PicturesAreStretchedCutOrFilledUp) {
  ImageWorker worker;
  json body = {{"prompt", "x"}, {"init_images", json::array({io::encode_base64("picture")})}};
  const auto fit = [&](int mode) {
    body["resize_mode"] = mode;
    EXPECT_EQ(worker.post("/sdapi/v1/img2img", body.dump()).status, 200) << mode;
    return worker.engine.last_request().fit;
  };
  EXPECT_EQ(fit(0), engine::Fit::stretch);
  EXPECT_EQ(fit(1), engine::Fit::crop);
  EXPECT_EQ(fit(2), engine::Fit::fill);
  body["resize_mode"] = 3;  // A1111 then enlarges latents
  EXPECT_THAT(error_of(worker.post("/sdapi/v1/img2img", body.dump())), HasSubstr("resize_mode"));
}

TEST(Sdapi, ProgressAndInterruptReachTheRunningJob) {
  ImageWorker worker({.hold = true});
  EXPECT_EQ(worker.get_json("/sdapi/v1/progress").at("progress"), 0);
  RawClient client(worker.port());
  client.send(request("POST", "/sdapi/v1/txt2img", R"({"prompt":"x","preview_interval":1})"));
  ASSERT_TRUE(worker.engine.wait_held());
  const json progress = worker.get_json("/sdapi/v1/progress");
  EXPECT_EQ(progress.at("progress"), 0.25);
  EXPECT_EQ(progress.at("eta_relative"), 1.5);
  EXPECT_EQ(progress.at("state").at("sampling_steps"), 4);
  EXPECT_EQ(progress.at("current_image"), io::encode_base64("small"));
  EXPECT_EQ(worker.post("/sdapi/v1/interrupt", "{}").status, 200);
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(json::parse(answer.body).at("images").size(), 1u);
}

TEST(Sdapi, InterruptEndsARequestAndSkipAPicture) {
  for (const auto& [path, images] :
       {std::pair{"/sdapi/v1/interrupt", 1u}, std::pair{"/sdapi/v1/skip", 2u}}) {
    ImageWorker worker({.hold = true});
    RawClient client(worker.port());
    client.send(request("POST", "/sdapi/v1/txt2img", R"({"prompt":"x","n_iter":2})"));
    ASSERT_TRUE(worker.engine.wait_held());
    EXPECT_EQ(worker.post(path, "{}").status, 200);
    EXPECT_EQ(json::parse(client.read_response().body).at("images").size(), images) << path;
  }
}

// Its client requested pictures whole, without a job.
TEST(Sdapi, InterruptCancelsRequestsOfOtherForms) {
  ImageWorker worker({.hold = true});
  RawClient client(worker.port());
  client.send(request("POST", "/v1/images/generations", R"({"prompt":"x"})"));
  ASSERT_TRUE(worker.engine.wait_held());
  EXPECT_EQ(worker.post("/sdapi/v1/interrupt", "{}").status, 200);
  EXPECT_EQ(client.read_response().status, 499);
}

std::string red_dot(int32_t width, int32_t height) {
  io::Pixels out{.width = width, .height = height, .channels = 3, .values = {}};
  for (int32_t i = 0; i < width * height; ++i) {
    out.values.insert(out.values.end(), {static_cast<uint8_t>(i == 0 ? 255 : 0), 0, 0});
  }
  return io::encode_base64(io::encode_png(out));
}

TEST(Sdapi, PicturesAreEnlargedWithoutAModel) {
  ImageWorker worker;
  const auto enlarged = [&](json body) {
    body["image"] = red_dot(3, 2);
    const auto answer = worker.post("/sdapi/v1/extra-single-image", body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    const std::string bytes = json::parse(answer.body).at("image");
    return io::decode_image(io::decode_base64(bytes, "image"), "image");
  };
  const io::Pixels twice = enlarged({{"upscaler_1", "Nearest"}, {"upscaling_resize", 2}});
  EXPECT_EQ(twice.width, 6);
  EXPECT_EQ(twice.height, 4);
  EXPECT_EQ(twice.values[3 * 7], 255);
  EXPECT_EQ(twice.values[3 * 8], 0);
  json to_size = {{"upscaler_1", "Lanczos"},
                  {"resize_mode", 1},
                  {"upscaling_resize_w", 12},
                  {"upscaling_resize_h", 10}};
  EXPECT_EQ(enlarged(to_size).width, 12);
  EXPECT_EQ(enlarged(to_size).height, 10);
  to_size["upscaling_crop"] = false;
  EXPECT_EQ(enlarged(to_size).width, 15);
  EXPECT_EQ(enlarged({{"upscaling_resize", 4}}).width, 3);
  for (const char* body :
       {R"({"upscaler_1":"Lanczos"})", R"({"image":"eA==","upscaler_1":"ESRGAN"})",
        R"({"image":"eA==","upscaler_1":"Lanczos"})", R"({"image":"eA==","upscaling_resize":9})"}) {
    EXPECT_EQ(worker.post("/sdapi/v1/extra-single-image", body).status, 400) << body;
  }
  json huge = {{"image", red_dot(600, 1)}, {"upscaler_1", "Lanczos"}, {"upscaling_resize", 8}};
  EXPECT_EQ(worker.post("/sdapi/v1/extra-single-image", huge.dump()).status, 400);
}

// As AUTOMATIC1111: runs the network until the picture is large enough, then resizes it.
TEST(Sdapi, PicturesAreEnlargedByNetworks) {
  ImageWorker worker;
  const json list = worker.get_json("/sdapi/v1/upscalers");
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list.back().at("name"), "sharp");
  EXPECT_EQ(list.back().at("scale"), 2);
  const auto enlarged = [&](double factor) {
    const json body = {
        {"image", red_dot(3, 2)}, {"upscaler_1", "sharp"}, {"upscaling_resize", factor}};
    const auto answer = worker.post("/sdapi/v1/extra-single-image", body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    const std::string bytes = json::parse(answer.body).at("image");
    return io::decode_image(io::decode_base64(bytes, "image"), "image");
  };
  const io::Pixels four = enlarged(4);
  EXPECT_EQ(four.width, 12);
  // Twice nearest neighbour: a square of 4 x 4 pixels has one colour.
  EXPECT_EQ(four.values[3 * (3 * 12 + 3)], 255);
  EXPECT_EQ(four.values[3 * (3 * 12 + 4)], 0);
  EXPECT_EQ(enlarged(1.5).width, 5);
  const json wide = {{"image", red_dot(2056, 1)}, {"upscaler_1", "sharp"}, {"upscaling_resize", 1}};
  const auto refused = worker.post("/sdapi/v1/extra-single-image", wide.dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, testing::HasSubstr("2048"));
  const json other = {{"image", red_dot(3, 2)}, {"upscaler_1", "R-ESRGAN 4x+"}};
  const auto unknown = worker.post("/sdapi/v1/extra-single-image", other.dump());
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(unknown.body, testing::HasSubstr("Nearest, sharp"));
}

// For most sizes no number of the field's type gives exactly that side.
TEST(Sdapi, EnlargesToTheLargestSide) {
  ImageWorker worker;
  const auto status = [&](int32_t side, double factor) {
    const json body = {
        {"image", red_dot(side, 1)}, {"upscaler_1", "Nearest"}, {"upscaling_resize", factor}};
    return worker.post("/sdapi/v1/extra-single-image", body.dump()).status;
  };
  for (const int32_t side : {1048, 1072, 1536, 2040}) {
    EXPECT_EQ(status(side, 4096.0 / side), 200) << side;
    EXPECT_EQ(status(side, 4097.0 / side), 400) << side;
  }
}

// As in AUTOMATIC1111, an enlarged file keeps the settings of the original.
TEST(Sdapi, EnlargedPicturesKeepTheirSettings) {
  ImageWorker worker;
  const io::Pixels dot = io::decode_image(io::decode_base64(red_dot(3, 2), "image"), "image");
  const std::string settings = "a dot\nSteps: 4, Seed: 7";
  const std::string file = io::encode_png(dot, {{"parameters", settings}});
  const auto enlarged = [&](json body, const std::string& sent) {
    body["image"] = io::encode_base64(sent);
    const auto answer = worker.post("/sdapi/v1/extra-single-image", body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return io::decode_base64(json::parse(answer.body).at("image").get<std::string>(), "image");
  };
  const std::string by = enlarged({{"upscaler_1", "sharp"}, {"upscaling_resize", 1.1}}, file);
  EXPECT_EQ(io::png_text(by, "parameters"), settings);
  EXPECT_EQ(io::png_text(by, "postprocessing"),
            "Postprocess upscale by: 1.1, Postprocess upscaler: sharp");
  const json size = {{"upscaler_1", "Lanczos"},
                     {"resize_mode", 1},
                     {"upscaling_resize_w", 12},
                     {"upscaling_resize_h", 10}};
  const std::string to = enlarged(size, io::encode_png(dot));
  EXPECT_EQ(io::png_text(to, "parameters"), std::nullopt);
  EXPECT_EQ(io::png_text(to, "postprocessing"),
            "Postprocess upscale to: 12x10, Postprocess crop to: 12x10, "
            "Postprocess upscaler: Lanczos");
  EXPECT_EQ(io::png_text(enlarged(json::object(), file), "parameters"), settings);
}

TEST(Sdapi, EnlargingTellsItsTilesAndCanBeInterrupted) {
  ImageWorker worker({.hold_tile = true});
  const json body = {{"image", red_dot(3, 2)}, {"upscaler_1", "sharp"}, {"upscaling_resize", 2}};
  RawClient client(worker.port());
  client.send(request("POST", "/sdapi/v1/extra-single-image", body.dump()));
  ASSERT_TRUE(worker.engine.wait_held());
  const json progress = worker.get_json("/sdapi/v1/progress");
  EXPECT_EQ(progress.at("progress"), 0.25);
  EXPECT_EQ(progress.at("textinfo"), "tile 1 of 4");
  EXPECT_EQ(progress.at("state").at("job"), "extra-single-image");
  EXPECT_EQ(worker.post("/sdapi/v1/interrupt", "{}").status, 200);
  EXPECT_EQ(client.read_response().status, 499);
  EXPECT_EQ(worker.get_json("/sdapi/v1/progress").at("progress"), 0);
}

TEST(Sdapi, EnlargingEndsWhenItsClientLeaves) {
  ImageWorker worker({.hold_tile = true});
  const json body = {{"image", red_dot(3, 2)}, {"upscaler_1", "sharp"}, {"upscaling_resize", 2}};
  {
    RawClient client(worker.port());
    client.send(request("POST", "/sdapi/v1/extra-single-image", body.dump()));
    ASSERT_TRUE(worker.engine.wait_held());
  }
  const auto busy = [&] { return worker.get_json("/sdapi/v1/progress").at("progress") != 0; };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (busy() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(busy());
}

// The fields of the queue's answer.
server::Response answer_of(const std::vector<std::string>& made) {
  return server::json_response(200, nlohmann::json{{"image", made.front()}}.dump());
}

// The test holds the first picture until it has checked the rest.
TEST(UpscaleQueue, OneWorksWhileABoundedNumberWaits) {
  std::promise<void> begun, go_on;
  std::atomic<int> made = 0;
  const auto work = [&](const std::string& image, const server::UpscaleOrder&,
                        const engine::UpscaleHooks&) {
    if (made++ == 0) {
      begun.set_value();
      go_on.get_future().wait();
    }
    if (image == "bad") fail(Code::invalid_argument, "image", "it is bad");
    return image;
  };
  std::vector<std::shared_ptr<server::DelayedResponse>> responses;
  {
    server::UpscaleQueue upscaler(work);
    responses.push_back(upscaler.submit({.images = {"first"}}, answer_of));
    begun.get_future().wait();
    EXPECT_FALSE(responses.front()->take());
    for (size_t i = 0; i < server::UpscaleQueue::kMostWaiting; ++i) {
      responses.push_back(upscaler.submit({.images = {i == 1 ? "bad" : "next"}}, answer_of));
    }
    EXPECT_THROW(upscaler.submit({.images = {"one more"}}, answer_of), server::Refused);
    responses.back()->abandon();
    responses.back() = upscaler.submit({.images = {"last"}}, answer_of);
    std::promise<void> done;
    responses.back()->attach([&] { done.set_value(); });
    EXPECT_FALSE(responses.back()->take());
    go_on.set_value();
    done.get_future().wait();
  }
  EXPECT_EQ(json::parse(responses.at(0)->take()->body).at("image"), "first");
  EXPECT_EQ(responses.at(2)->take()->status, 400);
  EXPECT_EQ(json::parse(responses.back()->take()->body).at("image"), "last");
  EXPECT_EQ(made, 1 + static_cast<int>(server::UpscaleQueue::kMostWaiting));
}

TEST(Sdapi, MemoryIsTheDevices) {
  ImageWorker worker;
  const json memory = worker.get_json("/sdapi/v1/memory");
  EXPECT_EQ(memory.at("cuda").at("system").at("total"), 1000);
  EXPECT_EQ(memory.at("cuda").at("system").at("used"), 600);
}

// Open WebUI, SillyTavern and webuiapi request these before they draw.
TEST(Sdapi, WhatClientsAskForIsAnswered) {
  ImageWorker worker;
  for (const char* path :
       {"latent-upscale-modes", "sd-vae", "sd-modules", "hypernetworks", "face-restorers",
        "realesrgan-models", "prompt-styles", "upscalers", "extensions"}) {
    EXPECT_TRUE(worker.get_json(cat("/sdapi/v1/", path)).is_array()) << path;
  }
  EXPECT_TRUE(worker.get_json("/sdapi/v1/scripts").at("txt2img").is_array());
  EXPECT_EQ(worker.get_json("/controlnet/version").at("version"), 2);
  EXPECT_EQ(worker.get_json("/controlnet/settings").at("control_net_unit_count"), 8);
  const json all = worker.get_json("/controlnet/control_types").at("control_types").at("All");
  EXPECT_EQ(all.at("module_list"), json::array({"none"}));
  EXPECT_EQ(all.at("model_list").at(0), "None");
  EXPECT_EQ(worker.get_json("/internal/ping"), json::object());
  for (const char* path : {"refresh-loras", "unload-checkpoint", "reload-checkpoint"}) {
    EXPECT_EQ(worker.post(cat("/sdapi/v1/", path), "").status, 200) << path;
  }
  const json options = worker.get_json("/sdapi/v1/options");
  EXPECT_EQ(worker.post("/sdapi/v1/options", options.dump()).status, 200);
  json body = {{"prompt", "x"}, {"override_settings", {{"CLIP_stop_at_last_layers", -1}}}};
  EXPECT_EQ(worker.post("/sdapi/v1/txt2img", body.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().clip_skip, 0);
  body["override_settings"]["CLIP_stop_at_last_layers"] = 2;
  const RawResponse drawn = worker.post("/sdapi/v1/txt2img", body.dump());
  EXPECT_EQ(worker.engine.last_request().clip_skip, 2);
  const json info = json::parse(json::parse(drawn.body).at("info").get<std::string>());
  EXPECT_EQ(info.at("all_prompts"), json::array({"x"}));
}

TEST(Sdapi, SecondPassesHaveAllFieldsOfAutomatic1111) {
  ImageWorker worker;
  json body = {{"prompt", "x"},
               {"enable_hr", true},
               {"hr_upscaler", "Lanczos"},
               {"hr_resize_x", 1024},
               {"hr_resize_y", 0},
               {"hr_second_pass_steps", 9},
               {"denoising_strength", 0.25}};
  ASSERT_EQ(worker.post("/sdapi/v1/txt2img", body.dump()).status, 200);
  const engine::ImageRequest sent = worker.engine.last_request();
  ASSERT_TRUE(sent.hires);
  EXPECT_EQ(sent.hires->width, 1024);
  EXPECT_EQ(sent.hires->height, 0);
  EXPECT_EQ(sent.hires->steps, 9);
  EXPECT_EQ(sent.hires->strength, 0.25f);
  EXPECT_EQ(sent.hires->upscaler, "Lanczos");
  EXPECT_EQ(sent.strength_rule, engine::StrengthRule::a1111);
  json usual = body;
  usual.erase("denoising_strength");
  ASSERT_EQ(worker.post("/sdapi/v1/txt2img", usual.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().hires->strength, 0.75f);  // A1111's own default
  body["hr_resize_x"] = 65;
  EXPECT_THAT(error_of(worker.post("/sdapi/v1/txt2img", body.dump())), HasSubstr("hr_resize_x"));
  const json modes = worker.get_json("/sdapi/v1/latent-upscale-modes");
  EXPECT_EQ(modes.size(), 6u);
  EXPECT_EQ(modes.at(5).at("name"), "Latent (nearest-exact)");
}

TEST(Sdapi, WhatThereIsNotIsRefusedWhereItIsAskedFor) {
  ImageWorker worker;
  const json plain = {
      {"prompt", "x"}, {"tiling", false}, {"restore_faces", nullptr}, {"refiner_checkpoint", ""}};
  EXPECT_EQ(worker.post("/sdapi/v1/txt2img", plain.dump()).status, 200);
  // Without these fields it is the same picture.
  const json same = {{"prompt", "x"},
                     {"styles", json::array()},
                     {"script_name", nullptr},
                     {"initial_noise_multiplier", 1.0},
                     {"hr_prompt", "y"},  // without enable_hr
                     {"override_settings", {{"sd_model_checkpoint", "fake-pictures"}}}};
  EXPECT_EQ(worker.post("/sdapi/v1/txt2img", same.dump()).status, 200);
  const json second = {{"enable_hr", true}, {"hr_sampler_name", "Use same sampler"}};
  json with_second = plain;
  with_second.update(second);
  EXPECT_EQ(worker.post("/sdapi/v1/txt2img", with_second.dump()).status, 200);
  const auto refused = [&](json body, const json& more) {
    body.update(more);
    const RawResponse answer = worker.post("/sdapi/v1/txt2img", body.dump());
    EXPECT_EQ(answer.status, 400) << more;
    EXPECT_THAT(error_of(answer), HasSubstr(more.begin().key()));
  };
  for (const json& more : {json{{"restore_faces", 1}}, json{{"refiner_checkpoint", "xl-refiner"}},
                           json{{"styles", {"ink"}}}, json{{"script_name", "x/y/z plot"}},
                           json{{"initial_noise_multiplier", 1.1}},
                           json{{"override_settings", {{"sd_model_checkpoint", "other"}}}}}) {
    refused(plain, more);
  }
  for (const char* name : {"hr_checkpoint_name", "hr_sampler_name", "hr_scheduler", "hr_prompt",
                           "hr_negative_prompt"}) {
    refused(with_second, {{name, "other"}});
  }
}

TEST(Sdapi, PromptsMayBeAbsent) {
  ImageWorker worker;
  EXPECT_EQ(worker.post("/sdapi/v1/txt2img", "{}").status, 200);
  EXPECT_EQ(worker.engine.last_request().prompt, "");
  EXPECT_EQ(worker.post("/v1/images/generations", "{}").status, 400);
}

TEST(Sdapi, SamplersAndBlursHaveOtherNamesToo) {
  ImageWorker worker;
  const std::string picture = io::encode_base64("picture");
  json body = {{"prompt", "x"},           {"init_images", {picture}}, {"mask", picture},
               {"sampler_index", "Heun"}, {"mask_blur_x", 7},         {"mask_blur_y", 7}};
  EXPECT_EQ(worker.post("/sdapi/v1/img2img", body.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().sampler, "Heun");
  EXPECT_EQ(worker.engine.last_request().mask_blur, 7);
  body["sampler_name"] = "LMS";
  body["mask_blur"] = 3;
  EXPECT_EQ(worker.post("/sdapi/v1/img2img", body.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().sampler, "LMS");
  EXPECT_EQ(worker.engine.last_request().mask_blur, 3);
  body["sampler_name"] = "";
  EXPECT_EQ(worker.post("/sdapi/v1/img2img", body.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().sampler, "Heun");
  body.erase("mask_blur");
  body["mask_blur_y"] = 0;
  EXPECT_THAT(error_of(worker.post("/sdapi/v1/img2img", body.dump())), HasSubstr("mask_blur_x"));
  body["init_images"] = {picture, picture};
  EXPECT_THAT(error_of(worker.post("/sdapi/v1/img2img", body.dump())), HasSubstr("init_images"));
}

TEST(Sdapi, TilingIsOfBothAxesOrOne) {
  ImageWorker worker;
  const auto tiling = [&](const json& value) {
    const json body = {{"prompt", "x"}, {"tiling", value}};
    EXPECT_EQ(worker.post("/sdapi/v1/txt2img", body.dump()).status, 200) << value;
    return worker.engine.last_request().tiling;
  };
  EXPECT_EQ(tiling(true), engine::Tiling::both);
  EXPECT_EQ(tiling(false), engine::Tiling::none);
  EXPECT_EQ(tiling(nullptr), engine::Tiling::none);
  EXPECT_EQ(tiling("x"), engine::Tiling::x);
  EXPECT_EQ(tiling("y"), engine::Tiling::y);
  EXPECT_EQ(tiling(1), engine::Tiling::both);
  for (const char* body : {R"({"prompt":"x","tiling":"z"})", R"({"prompt":"x","tiling":2})"}) {
    const auto refused = worker.post("/sdapi/v1/txt2img", body);
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_THAT(error_of(refused), HasSubstr("tiling"));
  }
}

TEST(Sdapi, SubseedsVaryTheNoise) {
  ImageWorker worker;
  const auto draw = [&](const json& body) {
    EXPECT_EQ(worker.post("/sdapi/v1/txt2img", body.dump()).status, 200);
    return worker.engine.last_request().variation;
  };
  EXPECT_EQ(draw({{"prompt", "x"}}).strength, 0);
  const json body = {{"prompt", "x"}, {"subseed", 7}, {"subseed_strength", 0.5}};
  EXPECT_EQ(draw(body).seed, 7u);
  EXPECT_EQ(draw(body).strength, 0.5f);
  EXPECT_FALSE(draw({{"prompt", "x"}, {"subseed", -1}, {"subseed_strength", 0.5}}).seed);
  const json wrong = {{"prompt", "x"}, {"subseed_strength", 2}};
  EXPECT_THAT(error_of(worker.post("/sdapi/v1/txt2img", wrong.dump())),
              HasSubstr("subseed_strength"));
}

TEST(Sdapi, PicturesMayBeJpegOrWebp) {
  ImageWorker worker;
  const auto draw = [&](const json& overrides) {
    const json body = {{"prompt", "x"}, {"override_settings", overrides}};
    EXPECT_EQ(worker.post("/sdapi/v1/txt2img", body.dump()).status, 200);
    return worker.engine.last_request().encoding;
  };
  EXPECT_EQ(draw(json::object()).format, io::ImageFormat::png);
  EXPECT_EQ(draw({{"samples_format", "jpg"}}).format, io::ImageFormat::jpeg);
  EXPECT_EQ(draw({{"samples_format", "jpg"}}).quality, 80);
  EXPECT_EQ(draw({{"samples_format", "webp"}, {"jpeg_quality", 55}}).quality, 55);
}

TEST(Sdapi, AddedNoiseIsAskedForInTheBodyOrItsOverrides) {
  ImageWorker worker;
  json body = {{"prompt", "x"},
               {"s_churn", 2.5},
               {"s_tmin", 0},
               {"s_tmax", nullptr},
               {"s_noise", 1.1},
               {"seed_resize_from_w", 512},
               {"seed_resize_from_h", 640},
               {"override_settings", {{"eta_noise_seed_delta", 31337}}}};
  EXPECT_EQ(worker.post("/sdapi/v1/txt2img", body.dump()).status, 200);
  const engine::ImageRequest request = worker.engine.last_request();
  EXPECT_EQ(request.added_noise.churn, 2.5f);
  EXPECT_EQ(request.added_noise.tmax, 0);
  EXPECT_EQ(request.added_noise.noise, 1.1f);
  EXPECT_EQ(request.seed_width, 512);
  EXPECT_EQ(request.seed_height, 640);
  EXPECT_EQ(request.seed_delta, 31337);
  body["override_settings"]["s_churn"] = 7;
  body["seed_resize_from_w"] = body["seed_resize_from_h"] = -1;  // its own default
  EXPECT_EQ(worker.post("/sdapi/v1/txt2img", body.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().added_noise.churn, 7);
  EXPECT_EQ(worker.engine.last_request().seed_width, 0);
  const auto refused = worker.post(
      "/sdapi/v1/txt2img", R"({"prompt":"x","s_noise":3,"s_churn":-1,"seed_resize_from_w":512})");
  EXPECT_EQ(refused.status, 400);
  for (const char* field : {"s_noise", "s_churn", "seed_resize_from_h"}) {
    EXPECT_THAT(refused.body, HasSubstr(field));
  }
}

TEST(Sdapi, ListsHaveTheFormOfAutomatic1111) {
  ImageWorker worker;
  const json samplers = worker.get_json("/sdapi/v1/samplers");
  ASSERT_GT(samplers.size(), 10u);
  EXPECT_TRUE(samplers[0].contains("aliases"));
  EXPECT_TRUE(samplers[0].contains("options"));
  EXPECT_GT(worker.get_json("/sdapi/v1/schedulers").size(), 5u);
  EXPECT_EQ(worker.get_json("/sdapi/v1/sd-models")[0].at("model_name"), "fake-pictures");
  EXPECT_EQ(worker.get_json("/sdapi/v1/options").at("sd_model_checkpoint"), "fake-pictures");
  const json embeddings = worker.get_json("/sdapi/v1/embeddings");
  EXPECT_EQ(embeddings.at("loaded").at("owl").at("vectors"), 2);
  EXPECT_TRUE(embeddings.at("skipped").contains("other"));
  const json lora = worker.get_json("/sdapi/v1/loras")[0];
  EXPECT_EQ(lora.at("name"), "styles/ink");
  EXPECT_EQ(lora.at("alias"), "India ink");
  EXPECT_EQ(worker.get_json("/v1/models").at("data")[0].at("id"), "fake-pictures");
  EXPECT_EQ(worker.get_json("/v1/models/fake-pictures").at("object"), "model");
}

}  // namespace
}  // namespace rbee::testing
