// The image worker over the wire: jobs, OpenAI's paths. AUTOMATIC1111's: sdapi_test.cc.

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "rbee/core/cat.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "server/apis/a1111/response.h"
#include "server/apis/own/image_response.h"
#include "tests/server/image_worker.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

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

TEST(ImageJobs, OfFewStepsShowEachOfThem) {
  ImageWorker worker;
  const auto interval = [&](int32_t steps) {
    const json job = {{"operation", "image_generation"}, {"prompt", "x"}, {"steps", steps}};
    worker.get(worker.new_stream(job.dump()));
    return worker.engine.last_request().preview_interval;
  };
  EXPECT_EQ(interval(1), 1);
  EXPECT_EQ(interval(4), 1);
  EXPECT_EQ(interval(5), 5);
  EXPECT_EQ(interval(20), 5);
}

TEST(ImageJobs, SeveralPicturesComeWithTheirSeeds) {
  ImageWorker worker;
  const RawResponse response = worker.get(
      worker.new_stream(R"({"operation":"image_generation","prompt":"a cat","seed":7,"count":3})"));
  const std::vector<Event> events = events_of(response.body);
  const json images = json::parse(events[events.size() - 2].data).at("images");
  ASSERT_THAT(images, SizeIs(3));
  EXPECT_EQ(images[2].at("seed"), 9);
  for (const json& image : images) {
    EXPECT_EQ(io::decode_base64(image.at("image").get<std::string>(), "image"), "not really a PNG");
  }
}

TEST(ImageJobs, TransformAndInpaintDecodeTheirPictures) {
  ImageWorker worker;
  const std::string picture = io::encode_base64("picture"), mask = io::encode_base64("mask");
  worker.get(worker.new_stream(json{{"operation", "image_transform"},
                                    {"prompt", "x"},
                                    {"input_image", picture},
                                    {"width", 640},
                                    {"strength", 0.25}}
                                   .dump()));
  EXPECT_EQ(worker.engine.last_request().width, 640);
  EXPECT_EQ(worker.engine.last_request().height, 0);
  EXPECT_EQ(worker.engine.last_request().init_image, "picture");
  EXPECT_EQ(worker.engine.last_request().strength, 0.25f);
  worker.get(worker.new_stream(json{
      {"operation", "image_inpaint"},
      {"prompt", "x"},
      {"init_image", "data:image/png;base64," + picture},
      {"mask_image", mask}}.dump()));
  EXPECT_EQ(worker.engine.last_request().init_image, "picture");
  EXPECT_EQ(worker.engine.last_request().mask_image, "mask");
  EXPECT_FALSE(worker.engine.last_request().init_on_white);
  EXPECT_FALSE(worker.engine.last_request().mask_opaque);
  EXPECT_EQ(worker.engine.last_request().strength, 1.0f);
}

TEST(ImageJobs, LorasMayHaveAnotherStrengthForTexts) {
  ImageWorker worker;
  worker.get(worker.new_stream(R"({"operation":"image_generation","prompt":"x",
      "loras":[{"path":"a","strength":0.5,"text_strength":-2},{"path":"b","strength":3}]})"));
  const std::vector<engine::LoraUse> loras = worker.engine.last_request().loras;
  ASSERT_THAT(loras, SizeIs(2));
  EXPECT_EQ(loras[0].strength, 0.5f);
  EXPECT_EQ(loras[0].text_strength, -2.0f);
  EXPECT_EQ(loras[1].text_strength, std::nullopt);
}

TEST(ImageJobs, PicturesAreEnlargedByANamedNetwork) {
  ImageWorker worker;
  worker.get(
      worker.new_stream(R"({"operation":"image_generation","prompt":"x","upscaler":"sharp"})"));
  EXPECT_EQ(worker.engine.last_request().upscaler, "sharp");
  worker.get(worker.new_stream(R"({"operation":"image_generation","prompt":"x"})"));
  EXPECT_EQ(worker.engine.last_request().upscaler, "");
  worker.post("/v1/images/generations", R"({"prompt":"x","upscaler":"sharp"})");
  EXPECT_EQ(worker.engine.last_request().upscaler, "sharp");
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
              HasSubstr("width must be a multiple of 8; the nearest are 96 and 104"));
  EXPECT_THAT(message(R"({"operation":"image_generation","prompt":"x","steps":0})"),
              HasSubstr("steps must be from 1 to 150"));
  EXPECT_THAT(message(R"({"operation":"image_transform","prompt":"x"})"),
              HasSubstr("input_image is missing"));
  EXPECT_THAT(message(R"({"operation":"image_transform","prompt":"x","input_image":"%%%"})"),
              HasSubstr("input_image:"));
  EXPECT_THAT(message(R"({"operation":"image_generation","prompt":"x","loras":[{"strength":99}]})"),
              HasSubstr("loras[0].path is missing"));
  EXPECT_THAT(message(R"({"operation":"image_generation","prompt":"x",
                          "loras":[{"path":"a","text_strength":-10.5}]})"),
              HasSubstr("loras[0].text_strength must be from -10 to 10"));
  // What the operation would pass over.
  EXPECT_THAT(message(R"({"operation":"image_generation","prompt":"x","init_image":"eA=="})"),
              HasSubstr("init_image is only for image_transform and image_inpaint"));
  EXPECT_THAT(message(R"({"operation":"image_transform","prompt":"x","image":"eA==",
                          "mask":"eA==","hires":{"scale":2}})"),
              AllOf(HasSubstr("mask is only for image_inpaint"),
                    HasSubstr("hires is only for image_generation")));
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

TEST(OpenAiImages, PicturesMayBeJpegOrWebp) {
  ImageWorker worker;
  const auto post = [&](const json& more) {
    json body = {{"prompt", "a cat"}};
    body.update(more);
    return worker.post("/v1/images/generations", body.dump());
  };
  const auto sent = [&] { return worker.engine.last_request().encoding; };
  const json jpeg = json::parse(
      post({{"output_format", "jpeg"}, {"output_compression", 40}, {"response_format", "url"}})
          .body);
  EXPECT_EQ(jpeg.at("output_format"), "jpeg");
  EXPECT_THAT(jpeg["data"][0].at("url").get<std::string>(), StartsWith("data:image/jpeg;base64,"));
  EXPECT_EQ(sent().format, io::ImageFormat::jpeg);
  EXPECT_EQ(sent().quality, 40);
  const RawResponse webp = post({{"output_format", "webp"}, {"stream", true}});
  EXPECT_THAT(webp.body, HasSubstr(R"("output_format":"webp")"));
  EXPECT_EQ(sent().quality, 100);
  EXPECT_EQ(json::parse(post(json::object()).body).at("output_format"), "png");
  EXPECT_THAT(error_of(post({{"output_format", "gif"}})), HasSubstr("png, jpeg, webp"));
  EXPECT_THAT(error_of(post({{"output_compression", 101}})), HasSubstr("output_compression"));
  EXPECT_THAT(error_of(post({{"background", "transparent"}})), HasSubstr("auto, opaque"));
}

// If it reports no tiles, the event is the one for steps.
TEST(ImageJobs, ProgressSaysTheTileThatANetworkIsAt) {
  const json steps =
      json::parse(server::to_json(server::ImageProgressEvent{.step = 2, .total = 4}));
  EXPECT_FALSE(steps.contains("tile") || steps.contains("tiles"));
  const json tiles = json::parse(
      server::to_json(server::ImageProgressEvent{.step = 4, .total = 4, .tile = 3, .tiles = 9}));
  EXPECT_EQ(tiles.at("type"), "progress");
  EXPECT_EQ(tiles.at("step"), 4);
  EXPECT_EQ(tiles.at("tile"), 3);
  EXPECT_EQ(tiles.at("tiles"), 9);
}

TEST(ImageJobs, CompletePicturesSayTheirForm) {
  ImageWorker worker;
  const std::string path =
      worker.new_stream(R"({"operation":"image_generation","prompt":"x","output_format":"webp"})");
  const auto events = events_of(worker.get(path).body);
  for (const Event& event : events) {
    if (event.name != "complete" && event.name != "preview") continue;
    const bool preview = event.name == "preview";
    EXPECT_EQ(json::parse(event.data).at("format"), preview ? "png" : "webp");
  }
  EXPECT_THAT(names_of(events), ::testing::Contains("complete"));
  EXPECT_EQ(worker.engine.last_request().encoding.quality, 90);
}

TEST(OpenAiImages, StreamSendsPartialAndCompletedPictures) {
  ImageWorker worker;
  const RawResponse response = worker.post(
      "/v1/images/generations",
      R"({"prompt":"a cat","stream":true,"partial_images":1,"steps":4,"response_format":"url"})");
  const auto events = events_of(response.body);
  ASSERT_THAT(names_of(events),
              ElementsAre("image_generation.partial_image", "image_generation.completed", ""));
  EXPECT_EQ(worker.engine.last_request().preview_count, 1);
  // Both have the fields that OpenAI's client types require.
  for (size_t i = 0; i < 2; ++i) {
    const json event = json::parse(events[i].data);
    EXPECT_EQ(event.at("type"), events[i].name);
    for (const char* field :
         {"b64_json", "created_at", "size", "quality", "background", "output_format"}) {
      EXPECT_TRUE(event.contains(field)) << events[i].name << ": " << field;
    }
    EXPECT_EQ(event.value("size", ""), json::parse(events[1].data).value("size", "none"));
  }
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

// Other servers accept them in this API.
TEST(OpenAiImages, SidesAreTakenWhereThereIsNoSize) {
  ImageWorker worker;
  json body = {{"prompt", "x"}, {"width", 64}, {"height", 128}};
  EXPECT_EQ(worker.post("/v1/images/generations", body.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().width, 64);
  EXPECT_EQ(worker.engine.last_request().height, 128);
  body["size"] = "256x512";
  EXPECT_EQ(worker.post("/v1/images/generations", body.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().width, 256);
  body["width"] = 65;
  EXPECT_THAT(error_of(worker.post("/v1/images/generations", body.dump())), HasSubstr("width"));
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

// JSON refuses two equal names, bytes that are no UTF-8, and types of other kinds; so do forms.
TEST(OpenAiImages, NothingOfAFormIsLost) {
  using namespace std::literals;
  ImageWorker worker;
  const std::pair<std::string, std::string> prompt = {"name=\"prompt\"", "x"},
                                            picture = {"name=\"image\"; filename=a", "picture"};
  const auto refusal = [&](std::vector<std::pair<std::string, std::string>> more) {
    more.insert(more.end(), {prompt, picture});
    const RawResponse response = send_form(worker, form(more));
    EXPECT_EQ(response.status, 400) << response.body;
    return error_of(response);
  };
  EXPECT_EQ(refusal({prompt}), "prompt is given twice");
  EXPECT_EQ(refusal({{"name=mask", "a"}, {"name=\"mask[]\"; filename=b", "b"}}),
            "mask can be given once to this model");
  EXPECT_THAT(refusal({{"name=control; filename=b", "b"}}), HasSubstr("control is a file"));
  EXPECT_EQ(refusal({{"name=negative_prompt", "\xff"}}), "negative_prompt is not text in UTF-8");
  EXPECT_THAT(refusal({{"name=\"\xff\"", "a"}}), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal({{"name=n", "2\0junk"s}}), HasSubstr("n must be an integer"));
  EXPECT_THAT(refusal({{"name=n", "[2]"}}), HasSubstr("n must be an integer"));
  EXPECT_THAT(refusal({{"name=steps", std::string(100000, '[')}}), HasSubstr("steps must be"));
}

// A picture of one half-transparent pixel and one of colour.
std::string half_transparent() {
  return io::encode_png(
      {.width = 2, .height = 1, .channels = 4, .values = {9, 9, 9, 0, 9, 9, 9, 255}});
}

TEST(OpenAiImages, EditsTakeJson) {
  ImageWorker worker;
  const std::string url = cat("data:image/png;base64,", io::encode_base64("picture"));
  const std::string mask = io::encode_base64("mask");
  for (const json& picture : {json(url), json({{"image_url", url}}), json({url})}) {
    const json body = {{"prompt", "x"}, {"image", picture}, {"mask", {{"image_url", mask}}}};
    const RawResponse response = worker.post("/v1/images/edits", body.dump());
    ASSERT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(worker.engine.last_request().init_image, "picture");
    EXPECT_EQ(worker.engine.last_request().mask_image, "mask");
    EXPECT_EQ(worker.engine.last_request().strength, 1.0f);
  }
  const auto refusal = [&](const json& body) {
    const RawResponse response = worker.post("/v1/images/edits", body.dump());
    EXPECT_EQ(response.status, 400);
    return response.body;
  };
  const json images = {{{"image_url", url}}, {{"image_url", url}}};
  EXPECT_THAT(refusal({{"prompt", "x"}, {"images", images}}), HasSubstr("once"));
  EXPECT_THAT(refusal({{"prompt", "x"}, {"image", url}, {"images", {url}}}), HasSubstr("once"));
  EXPECT_THAT(refusal({{"prompt", "x"}, {"image", "https://a.b/c.png"}}), HasSubstr("not fetched"));
  EXPECT_THAT(refusal({{"prompt", "x"}, {"images", {{{"file_id", "f"}}}}}), HasSubstr("image_url"));
  EXPECT_THAT(refusal({{"prompt", "x"}}), HasSubstr("image is missing"));
  EXPECT_THAT(refusal({{"image", url}}), HasSubstr("prompt"));
}

TEST(OpenAiImages, WhatIsTransparentIsTheMask) {
  ImageWorker worker;
  const std::string picture = half_transparent();
  const std::string part = "name=\"image\"; filename=\"a.png\"";
  ASSERT_EQ(send_form(worker, form({{"name=\"prompt\"", "x"}, {part, picture}})).status, 200);
  EXPECT_EQ(worker.engine.last_request().mask_image, picture);
  EXPECT_EQ(worker.engine.last_request().strength, 1.0f);
  std::string opaque =
      io::encode_png({.width = 1, .height = 1, .channels = 4, .values = {9, 9, 9, 255}});
  ASSERT_EQ(send_form(worker, form({{"name=\"prompt\"", "x"}, {part, opaque}})).status, 200);
  EXPECT_EQ(worker.engine.last_request().mask_image, "");
}

TEST(OpenAiImages, VariationsNeedNoPrompt) {
  ImageWorker worker;
  const json body = {{"image", io::encode_base64(half_transparent())}, {"n", 2}};
  const RawResponse response = worker.post("/v1/images/variations", body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const engine::ImageRequest request = worker.engine.last_request();
  EXPECT_EQ(request.prompt, "");
  EXPECT_EQ(request.count, 2);
  EXPECT_EQ(request.mask_image, "");
  EXPECT_EQ(request.strength, 0.7f);
}

TEST(OpenAiImages, EditsOfJsonTakeOnePicture) {
  ImageWorker worker;
  const json picture = io::encode_base64("picture");
  const json body = {{"prompt", "x"}, {"image", {picture, picture}}};
  EXPECT_EQ(error_of(worker.post("/v1/images/edits", body.dump())),
            "image can be given once to this model");
}

// The names that clients give to files of a list.
TEST(OpenAiImages, EditsTakeOnePictureByAnyName) {
  ImageWorker worker;
  const auto send = [&](std::initializer_list<const char*> names) {
    std::vector<std::pair<std::string, std::string>> parts = {{"name=\"prompt\"", "x"}};
    for (const char* name : names) {
      parts.emplace_back(cat("name=\"", name, "\"; filename=\"a.png\""), "picture");
    }
    return send_form(worker, form(parts));
  };
  for (const char* name : {"image", "image[]", "image[0]", "images", "images[]"}) {
    EXPECT_EQ(send({name}).status, 200) << name;
    EXPECT_EQ(worker.engine.last_request().init_image, "picture");
    const RawResponse refused = send({name, name});
    EXPECT_EQ(refused.status, 400) << name;
    EXPECT_THAT(refused.body, HasSubstr("image can be given once to this model"));
  }
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
  EXPECT_EQ(ask(worker.port(),
                "POST /v1/images/edits HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}")
                .status,
            415);
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

TEST(ImageStatus, HealthAndMetricsSayWhetherStepsAreCaptured) {
  const ImageWorker captures;
  EXPECT_EQ(captures.get_json("/health").at("graphs"), json({{"captured", true}}));
  EXPECT_THAT(captures.get("/metrics").body, HasSubstr("\nrbee_graphs_captured 1\n"));
  const ImageWorker does_not({.capture_refusal = "the driver forgets"});
  EXPECT_EQ(does_not.get_json("/health").at("graphs"),
            json({{"captured", false}, {"reason", "the driver forgets"}}));
  EXPECT_THAT(does_not.get("/metrics").body, HasSubstr("\nrbee_graphs_captured 0\n"));
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
  EXPECT_THAT(page.headers.at("content-security-policy"), Not(HasSubstr("unsafe")));
}

TEST(ImageStatus, ThePageLoadsNothingFromElsewhere) {
  ImageWorker worker;
  const std::string page = worker.get("/", "Accept: text/html\r\n").body;
  std::string base;
  for (const char* name : {"base.css", "draw.css", "draw.js"}) {
    const size_t end = page.find(cat("/", name, "\""));
    ASSERT_NE(end, std::string::npos) << name;
    base = page.substr(page.rfind('"', end) + 1, end - page.rfind('"', end) - 1);
    EXPECT_EQ(worker.get(cat(base, "/", name)).status, 200) << name;
  }
  // Each module that one of the page's modules names.
  const std::regex named(R"re(from "\./([a-z]+\.js)";)re");
  std::vector<std::string> files = {"draw.js"};
  for (size_t i = 0; i < files.size(); ++i) {
    const RawResponse file = worker.get(cat(base, "/", files[i]));
    EXPECT_EQ(file.status, 200) << files[i];
    EXPECT_THAT(file.headers.at("cache-control"), HasSubstr("immutable")) << files[i];
    for (std::sregex_iterator it(file.body.begin(), file.body.end(), named), end; it != end; ++it) {
      if (std::ranges::count(files, (*it)[1].str()) == 0) files.push_back((*it)[1]);
    }
  }
  EXPECT_GE(files.size(), 8u);
  EXPECT_EQ(worker.get(cat(base, "/none.js")).status, 404);
}

}  // namespace
}  // namespace rbee::testing
