// The image worker over the wire: jobs, OpenAI's and AUTOMATIC1111's paths.

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "server/http/server.h"
#include "server/image/routes.h"
#include "server/image/service.h"
#include "server/image/upscale.h"
#include "tests/server/fake_image_engine.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct ImageWorker {
  explicit ImageWorker(ImageScript script = {}, server::JobStoreOptions jobs = {})
      : engine(std::move(script)),
        service(engine, {.worker_id = "sd-1",
                         .model_id = "",
                         .implementation = "sd-worker-test",
                         .version = "1.2.3",
                         .jobs = jobs}),
        server({}, server::image_routes(service, nullptr), server::ApiKeys()) {
    service.set_port(server.port());
  }

  uint16_t port() const { return server.port(); }
  RawResponse get(std::string_view path, std::string_view headers = {}) const {
    return ask(port(), request("GET", path, {}, headers));
  }
  RawResponse post(std::string_view path, std::string_view body) const {
    return ask(port(), request("POST", path, body));
  }
  json get_json(std::string_view path) const { return json::parse(get(path).body); }
  std::string new_stream(std::string_view body) const {
    const RawResponse response = post("/v1/jobs", body);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).at("sse_url").get<std::string>();
  }

  FakeImageEngine engine;
  server::ImageService service;
  server::Server server;
};

struct Event {
  std::string name;  // empty: the event has none
  std::string data;
};

std::vector<Event> events_of(const std::string& body) {
  std::vector<Event> out;
  size_t at = 0;
  for (size_t end; (end = body.find("\n\n", at)) != std::string::npos; at = end + 2) {
    const std::string block = body.substr(at, end - at);
    const size_t data = block.find("data: ");
    if (data == std::string::npos) continue;  // a comment
    out.push_back({data == 0 ? "" : block.substr(7, data - 8), block.substr(data + 6)});
  }
  return out;
}

std::vector<std::string> names_of(const std::vector<Event>& events) {
  std::vector<std::string> names;
  for (const Event& event : events) names.push_back(event.name);
  return names;
}

std::string error_of(const RawResponse& response) {
  return json::parse(response.body).at("error").at("message");
}

constexpr const char* kCat = R"({"operation":"image_generation","prompt":"a cat"})";

TEST(ImageJobs, StreamHasNamedEventsAndEndsWithDone) {
  ImageWorker worker;
  const RawResponse response = worker.get(worker.new_stream(
      R"({"operation":"image_generation","hive_id":"h","model":"m","prompt":"a cat",
          "steps":5,"seed":7,"width":256,"height":256,"guidance_scale":3})"));
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  const std::vector<Event> events = events_of(response.body);
  EXPECT_THAT(names_of(events), ElementsAre("started", "progress", "progress", "progress",
                                            "progress", "progress", "preview", "complete", ""));
  const json started = json::parse(events[0].data);
  EXPECT_EQ(started.at("type"), "started");
  EXPECT_EQ(started.at("seed"), 7);
  EXPECT_EQ(started.at("width"), 256);
  EXPECT_EQ(started.at("guidance_scale"), 3);
  const json step = json::parse(events[2].data);
  EXPECT_EQ(step.at("type"), "progress");
  EXPECT_EQ(step.at("step"), 2);
  EXPECT_EQ(step.at("total"), 5);
  EXPECT_EQ(step.at("percent"), 40);
  EXPECT_EQ(step.at("images_per_second"), 0.4);
  const json preview = json::parse(events[6].data);
  EXPECT_EQ(io::decode_base64(preview.at("image").get<std::string>(), "image"), "small");
  EXPECT_EQ(preview.at("step"), 5);
  const json complete = json::parse(events[7].data);
  EXPECT_EQ(complete.at("type"), "complete");
  EXPECT_EQ(complete.at("format"), "png");
  EXPECT_EQ(io::decode_base64(complete.at("image").get<std::string>(), "image"),
            "not really a PNG");
  EXPECT_EQ(complete.at("parameters"), "a cat\nSteps: 4");
  EXPECT_EQ(events[8].data, "[DONE]");
}

TEST(ImageJobs, SeveralPicturesComeWithTheirSeeds) {
  ImageWorker worker;
  const RawResponse response = worker.get(
      worker.new_stream(R"({"operation":"image_generation","prompt":"a cat","seed":7,"count":3})"));
  const std::vector<Event> events = events_of(response.body);
  const json images = json::parse(events[events.size() - 2].data).at("images");
  ASSERT_THAT(images, SizeIs(3));
  EXPECT_EQ(images[2].at("seed"), 9);
  EXPECT_TRUE(images[2].contains("image"));
}

TEST(ImageJobs, TransformAndInpaintDecodeTheirPictures) {
  ImageWorker worker;
  const std::string picture = io::encode_base64("picture"), mask = io::encode_base64("mask");
  worker.get(worker.new_stream(json{{"operation", "image_transform"},
                                    {"prompt", "x"},
                                    {"input_image", picture},
                                    {"strength", 0.25}}
                                   .dump()));
  EXPECT_EQ(worker.engine.last_request().init_image, "picture");
  EXPECT_EQ(worker.engine.last_request().strength, 0.25f);
  worker.get(worker.new_stream(json{
      {"operation", "image_inpaint"},
      {"prompt", "x"},
      {"init_image", "data:image/png;base64," + picture},
      {"mask_image", mask}}.dump()));
  EXPECT_EQ(worker.engine.last_request().init_image, "picture");
  EXPECT_EQ(worker.engine.last_request().mask_image, "mask");
  EXPECT_EQ(worker.engine.last_request().strength, 1.0f);
}

TEST(ImageJobs, WrongBodiesNameFieldAndRange) {
  ImageWorker worker;
  const auto message = [&](std::string_view body) {
    const RawResponse response = worker.post("/v1/jobs", body);
    EXPECT_EQ(response.status, 400) << body;
    return error_of(response);
  };
  EXPECT_THAT(message(R"({"prompt":"x"})"), HasSubstr("operation must be one of"));
  EXPECT_THAT(message(R"({"operation":"image_generation"})"), HasSubstr("prompt is missing"));
  EXPECT_THAT(message(R"({"operation":"image_generation","prompt":"x","width":100})"),
              HasSubstr("width must be a multiple of 8"));
  EXPECT_THAT(message(R"({"operation":"image_generation","prompt":"x","steps":0})"),
              HasSubstr("steps must be from 1 to 150"));
  EXPECT_THAT(message(R"({"operation":"image_transform","prompt":"x"})"),
              HasSubstr("input_image is missing"));
  EXPECT_THAT(message(R"({"operation":"image_transform","prompt":"x","input_image":"%%%"})"),
              HasSubstr("init_image"));
  EXPECT_THAT(message(R"({"operation":"image_generation","prompt":"x","loras":[{"strength":99}]})"),
              HasSubstr("loras[0].path is missing"));
}

TEST(ImageJobs, FailureAndCancelEndTheStreamWithAnError) {
  ImageWorker failing({.failure = engine::ImageFailed{Code::out_of_memory, "no room"}});
  const std::vector<Event> failed = events_of(failing.get(failing.new_stream(kCat)).body);
  EXPECT_THAT(names_of(failed), ElementsAre("started", "error", ""));
  EXPECT_EQ(json::parse(failed[1].data).at("message"), "no room");

  ImageWorker holding({.hold = true});
  const std::string path = holding.new_stream(kCat);
  RawClient client(holding.port());
  client.send(request("GET", path));
  ASSERT_TRUE(holding.engine.wait_held());
  const std::string job = path.substr(0, path.rfind('/'));
  EXPECT_EQ(ask(holding.port(), request("DELETE", job)).status, 202);
  EXPECT_THAT(client.read_until("[DONE]\n\n"), HasSubstr("\"code\":\"CANCELLED\""));
}

TEST(ImageJobs, FullQueueIs429) {
  ImageWorker worker;
  worker.engine.refuse_with(Code::out_of_memory);
  const RawResponse response = worker.post("/v1/jobs", kCat);
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.headers.at("retry-after"), "1");
}

TEST(OpenAiImages, GenerationsAnswerBase64) {
  ImageWorker worker;
  const RawResponse response =
      worker.post("/v1/images/generations",
                  R"({"prompt":"a cat","n":2,"size":"256x256","seed":5,"cfg_scale":2})");
  ASSERT_EQ(response.status, 200) << response.body;
  const json body = json::parse(response.body);
  ASSERT_THAT(body.at("data"), SizeIs(2));
  EXPECT_EQ(io::decode_base64(body["data"][1].at("b64_json").get<std::string>(), "b64_json"),
            "not really a PNG");
  EXPECT_GT(body.at("created"), 1'700'000'000);
  EXPECT_EQ(body.at("size"), "256x256");
  EXPECT_EQ(worker.engine.last_request().guidance_scale, 2.0f);
}

TEST(OpenAiImages, StreamSendsPartialAndCompletedPictures) {
  ImageWorker worker;
  const RawResponse response = worker.post(
      "/v1/images/generations",
      R"({"prompt":"a cat","stream":true,"partial_images":1,"steps":4,"response_format":"url"})");
  EXPECT_THAT(names_of(events_of(response.body)),
              ElementsAre("image_generation.partial_image", "image_generation.partial_image",
                          "image_generation.completed", ""));
}

TEST(OpenAiImages, WrongSizesAreErrors) {
  ImageWorker worker;
  for (const char* size : {"256", "x", "256x", "255x256", "256x256x", "4096x64", "-8x64"}) {
    const RawResponse response =
        worker.post("/v1/images/generations", json{{"prompt", "x"}, {"size", size}}.dump());
    EXPECT_EQ(response.status, 400) << size;
    EXPECT_THAT(error_of(response), HasSubstr("size must be")) << size;
  }
}

std::string form(const std::vector<std::pair<std::string, std::string>>& parts) {
  std::string body;
  for (const auto& [head, data] : parts) {
    body += cat("--xyz\r\nContent-Disposition: form-data; ", head, "\r\n\r\n", data, "\r\n");
  }
  return body + "--xyz--\r\n";
}

RawResponse send_form(const ImageWorker& worker, const std::string& body) {
  return ask(worker.port(),
             cat("POST /v1/images/edits HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                 "Content-Type: multipart/form-data; boundary=\"xyz\"\r\nContent-Length: ",
                 body.size(), "\r\n\r\n", body));
}

TEST(OpenAiImages, EditsTakeAFormWithPictureAndMask) {
  ImageWorker worker;
  const RawResponse response =
      send_form(worker, form({{"name=\"prompt\"", "7"},
                              {"name=\"n\"", "2"},
                              {"name=\"image\"; filename=\"a.png\"", std::string("\x89P\r\n\0", 5)},
                              {"name=\"mask\"; filename=\"m.png\"", "mask"}}));
  ASSERT_EQ(response.status, 200) << response.body;
  const engine::ImageRequest request = worker.engine.last_request();
  EXPECT_EQ(request.prompt, "7");
  EXPECT_EQ(request.count, 2);
  EXPECT_EQ(request.init_image, std::string("\x89P\r\n\0", 5));
  EXPECT_EQ(request.mask_image, "mask");
}

TEST(OpenAiImages, EventsOfEditsAreNamedSo) {
  ImageWorker worker;
  const RawResponse response =
      send_form(worker, form({{"name=\"prompt\"", "x"},
                              {"name=\"stream\"", "true"},
                              {"name=\"image[]\"; filename=\"a.png\"", "picture"}}));
  const std::vector<Event> events = events_of(response.body);
  EXPECT_THAT(names_of(events), ElementsAre("image_edit.completed", ""));
  EXPECT_EQ(json::parse(events[0].data).at("type"), "image_edit.completed");
}

TEST(OpenAiImages, EditsWithoutPictureOrFormAreErrors) {
  ImageWorker worker;
  EXPECT_THAT(error_of(send_form(worker, form({{"name=\"prompt\"", "x"}}))),
              HasSubstr("image is missing"));
  EXPECT_EQ(send_form(worker, "--xyz\r\n").status, 400);
  EXPECT_EQ(worker.post("/v1/images/edits", "{}").status, 415);
}

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

// Its client asked for whole pictures.
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

// The first picture is held until the rest have been looked at.
TEST(Upscaler, OneWorksWhileABoundedNumberWaits) {
  std::promise<void> begun, go_on;
  std::atomic<int> made = 0;
  const auto work = [&](const server::SdapiUpscale& wanted) {
    if (made++ == 0) {
      begun.set_value();
      go_on.get_future().wait();
    }
    if (wanted.image == "bad") fail(Code::invalid_argument, "image", "it is bad");
    return wanted.image;
  };
  std::vector<std::shared_ptr<server::DelayedResponse>> responses;
  {
    server::Upscaler upscaler(work);
    responses.push_back(upscaler.submit({.image = "first"}));
    begun.get_future().wait();
    EXPECT_FALSE(responses.front()->take());
    for (size_t i = 0; i < server::Upscaler::kMostWaiting; ++i) {
      responses.push_back(upscaler.submit({.image = i == 1 ? "bad" : "next"}));
    }
    EXPECT_THROW(upscaler.submit({.image = "one more"}), server::Refused);
    responses.back()->abandon();
    responses.back() = upscaler.submit({.image = "last"});
    std::promise<void> done;
    responses.back()->attach([&] { done.set_value(); });
    EXPECT_FALSE(responses.back()->take());
    go_on.set_value();
    done.get_future().wait();
  }
  EXPECT_EQ(json::parse(responses.at(0)->take()->body).at("image"), "first");
  EXPECT_EQ(responses.at(2)->take()->status, 400);
  EXPECT_EQ(json::parse(responses.back()->take()->body).at("image"), "last");
  EXPECT_EQ(made, 1 + static_cast<int>(server::Upscaler::kMostWaiting));
}

TEST(Sdapi, MemoryIsTheDevices) {
  ImageWorker worker;
  const json memory = worker.get_json("/sdapi/v1/memory");
  EXPECT_EQ(memory.at("cuda").at("system").at("total"), 1000);
  EXPECT_EQ(memory.at("cuda").at("system").at("used"), 600);
}

// Open WebUI, SillyTavern and webuiapi ask for these before they draw.
TEST(Sdapi, WhatClientsAskForIsAnswered) {
  ImageWorker worker;
  for (const char* path : {"latent-upscale-modes", "sd-vae", "sd-modules", "hypernetworks",
                           "face-restorers", "realesrgan-models", "prompt-styles", "upscalers"}) {
    EXPECT_TRUE(worker.get_json(cat("/sdapi/v1/", path)).is_array()) << path;
  }
  EXPECT_TRUE(worker.get_json("/sdapi/v1/scripts").at("txt2img").is_array());
  EXPECT_EQ(worker.get_json("/controlnet/version").at("version"), 2);
  EXPECT_EQ(worker.post("/sdapi/v1/refresh-loras", "").status, 200);
  EXPECT_EQ(worker.post("/sdapi/v1/options", R"({"sd_model_checkpoint":"x"})").status, 200);
  const json body = {{"prompt", "x"}, {"override_settings", {{"CLIP_stop_at_last_layers", 2}}}};
  const RawResponse drawn = worker.post("/sdapi/v1/txt2img", body.dump());
  EXPECT_EQ(worker.engine.last_request().clip_skip, 2);
  const json info = json::parse(json::parse(drawn.body).at("info").get<std::string>());
  EXPECT_EQ(info.at("all_prompts"), json::array({"x"}));
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
  EXPECT_EQ(parameters.at("Steps"), 9);
  EXPECT_EQ(parameters.at("Sampler"), "Euler a");
  EXPECT_EQ(parameters.at("Schedule type"), "Karras");
  EXPECT_EQ(parameters.at("CFG scale"), 6.5);
  EXPECT_EQ(parameters.at("Seed"), 12);
  EXPECT_EQ(parameters.at("Size-2"), 72);
  const json nothing = json::parse(ask_for(io::encode_png(pixels)).body);
  EXPECT_EQ(nothing.at("info"), "");
  EXPECT_TRUE(nothing.at("parameters").empty());
  EXPECT_EQ(ask_for(io::encode_png(pixels, {{"parameters", "x\nSteps: many"}})).status, 400);
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
  EXPECT_EQ(worker.get_json("/sdapi/v1/loras")[0].at("name"), "styles/ink");
  EXPECT_EQ(worker.get_json("/v1/models").at("data")[0].at("id"), "fake-pictures");
  EXPECT_EQ(worker.get_json("/v1/models/fake-pictures").at("object"), "model");
}

json control_use(const char* model) {
  return {{"image", io::encode_base64("edges")},
          {"model", model},
          {"weight", 0.5},
          {"guidance_start", 0.25},
          {"guidance_end", 0.75}};
}

TEST(Controls, AreReadFromOurListAndFromTheExtensionOfAutomatic1111) {
  ImageWorker worker;
  const json own = {
      {"operation", "image_generation"},
      {"prompt", "x"},
      {"control", json::array({control_use("canny"), json{{"image", io::encode_base64("b")}}})}};
  worker.get(worker.new_stream(own.dump()));
  std::vector<engine::ControlUse> got = worker.engine.last_request().controls;
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[0].name, "canny");
  EXPECT_EQ(got[0].image, "edges");
  EXPECT_EQ(got[0].scale, 0.5f);
  EXPECT_EQ(got[0].start, 0.25f);
  EXPECT_EQ(got[0].finish, 0.75f);
  EXPECT_EQ(got[1].name, "");
  EXPECT_EQ(got[1].scale, 1.0f);

  json off = control_use("depth");
  off["enabled"] = false;
  const json args = json::array({off, control_use("canny [d14c016b]")});
  const json script = {{"prompt", "x"}, {"alwayson_scripts", {{"controlnet", {{"args", args}}}}}};
  EXPECT_EQ(worker.post("/sdapi/v1/txt2img", script.dump()).status, 200);
  got = worker.engine.last_request().controls;
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].name, "canny");
}

TEST(Controls, WrongOnesAreNamed) {
  ImageWorker worker;
  const auto message = [&](const char* field, const json& value) {
    json use = control_use("canny");
    use[field] = value;
    return error_of(worker.post(
        "/v1/jobs",
        json{{"operation", "image_generation"}, {"prompt", "x"}, {"control", json::array({use})}}
            .dump()));
  };
  EXPECT_THAT(message("weight", 3), HasSubstr("control[0].weight must be"));
  EXPECT_THAT(message("image", nullptr), HasSubstr("control[0].image is missing"));
  EXPECT_THAT(message("guidance_end", 0.1), HasSubstr("must not be before the start"));
  EXPECT_THAT(message("module", "canny"), HasSubstr("send the picture that the network reads"));
  EXPECT_EQ(worker.get_json("/controlnet/model_list").at("model_list"), json::array({"canny"}));
}

TEST(ImageStatus, HealthMetricsAndPage) {
  ImageWorker worker;
  const json health = worker.get_json("/health");
  EXPECT_EQ(health.at("status"), "healthy");
  EXPECT_EQ(health.at("architecture"), "sd1");
  EXPECT_EQ(health.at("default_width"), 512);
  EXPECT_THAT(worker.get("/metrics").body, HasSubstr("rbee_images_total 3\n"));
  const RawResponse page = worker.get("/", "Accept: text/html\r\n");
  EXPECT_THAT(page.body, StartsWith("<!doctype html>"));
  EXPECT_THAT(page.body, HasSubstr("/v1/jobs"));
}

}  // namespace
}  // namespace rbee::testing
