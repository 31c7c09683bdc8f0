// AUTOMATIC1111's API besides drawing: enlarging many pictures, progress by request, missing
// routes.

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "rbee/core/cancel.h"
#include "rbee/core/cat.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/image/png.h"
#include "server/apis/a1111/response.h"
#include "server/image/upscale.h"
#include "tests/server/image_worker.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string grey(int32_t width, int32_t height, uint8_t value) {
  io::Pixels out{.width = width, .height = height, .channels = 3, .values = {}};
  out.values.assign(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, value);
  return io::encode_base64(io::encode_png(out));
}

json batch_of(const std::vector<std::string>& pictures) {
  json out = {{"upscaler_1", "Nearest"}, {"upscaling_resize", 2}, {"imageList", json::array()}};
  for (const std::string& picture : pictures) {
    out["imageList"].push_back({{"data", picture}, {"name", "a.png"}});
  }
  return out;
}

TEST(SdapiBatch, EnlargesEachPicture) {
  ImageWorker worker;
  const json body = batch_of({grey(3, 2, 7), cat("data:image/png;base64,", grey(5, 5, 9))});
  const auto answer = worker.post("/sdapi/v1/extra-batch-images", body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json images = json::parse(answer.body).at("images");
  ASSERT_EQ(images.size(), 2u);
  const std::pair<int32_t, uint8_t> wanted[] = {{6, 7}, {10, 9}};
  for (size_t i = 0; i < 2; ++i) {
    const std::string file = io::decode_base64(images[i].get<std::string>(), "image");
    const io::Pixels picture = io::decode_image(file, "image");
    EXPECT_EQ(picture.width, wanted[i].first);
    EXPECT_EQ(picture.values.back(), wanted[i].second);
  }
  json network = body;
  network["upscaler_1"] = "sharp";
  EXPECT_EQ(worker.post("/sdapi/v1/extra-batch-images", network.dump()).status, 200);
}

TEST(SdapiBatch, HasBounds) {
  ImageWorker worker;
  const auto refused = [&](const json& body, const char* reason) {
    const auto answer = worker.post("/sdapi/v1/extra-batch-images", body.dump());
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(reason));
  };
  const std::string small = grey(1, 1, 0), large = grey(2048, 2048, 0);
  refused(batch_of(std::vector<std::string>(17, small)), "imageList");
  refused(batch_of({}), "imageList");
  refused(json::object(), "imageList");
  refused({{"imageList", {{{"name", "a"}}}}}, "imageList[0].data");
  refused(batch_of({"eA=="}), "image");
  // Counts memory held at once: twice 2048 pixels a side is half of a request's limit.
  refused(batch_of({large, large, small}), "33554432");
}

// Unsupported fields that would change the picture are refused, not ignored.
TEST(SdapiExtras, FacesAndSecondUpscalersAreRefused) {
  ImageWorker worker;
  for (const char* field :
       {"gfpgan_visibility", "codeformer_visibility", "extras_upscaler_2_visibility"}) {
    json body = {{"image", grey(3, 2, 7)}, {"upscaler_1", "Nearest"}, {field, 0}};
    EXPECT_EQ(worker.post("/sdapi/v1/extra-single-image", body.dump()).status, 200) << field;
    body[field] = 0.5;
    const auto answer = worker.post("/sdapi/v1/extra-single-image", body.dump());
    EXPECT_EQ(answer.status, 400) << field;
    EXPECT_THAT(answer.body, HasSubstr(field));
  }
}

TEST(SdapiInterrogate, SaysThatThereIsNoSuchModel) {
  ImageWorker worker;
  const json body = {{"image", grey(3, 2, 7)}, {"model", "clip"}};
  const auto answer = worker.post("/sdapi/v1/interrogate", body.dump());
  EXPECT_EQ(answer.status, 501);
  EXPECT_THAT(error_of(answer), HasSubstr("no model that describes pictures"));
}

json told(const ImageWorker& worker, const std::string& task, int32_t preview = -1) {
  const json body = {{"id_task", task}, {"id_live_preview", preview}, {"live_preview", true}};
  const auto answer = worker.post("/internal/progress", body.dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  return json::parse(answer.body);
}

TEST(SdapiTasks, AreToldByTheirIds) {
  ImageWorker worker({.hold = true});
  const auto begin = [&](RawClient& client, const char* task) {
    const json body = {{"prompt", "a cat"}, {"steps", 4}, {"force_task_id", task}};
    client.send(request("POST", "/sdapi/v1/txt2img", body.dump()));
  };
  RawClient first(worker.port()), second(worker.port());
  begin(first, "task(one)");
  ASSERT_TRUE(worker.engine.wait_held());
  begin(second, "task(two)");
  while (worker.engine.stats().waiting == 0) std::this_thread::yield();

  const json unknown = told(worker, "task(none)");
  EXPECT_FALSE(unknown.at("active") || unknown.at("queued") || unknown.at("completed"));
  EXPECT_EQ(unknown.at("id_live_preview"), -1);
  const json queued = told(worker, "task(two)");
  EXPECT_TRUE(queued.at("queued"));
  EXPECT_TRUE(queued.at("progress").is_null());
  const json active = told(worker, "task(one)");
  EXPECT_TRUE(active.at("active"));
  EXPECT_FALSE(active.at("completed"));
  EXPECT_EQ(active.at("progress"), 0.25);
  EXPECT_EQ(active.at("id_live_preview"), 1);
  EXPECT_TRUE(told(worker, "task(one)", 1).at("live_preview").is_null());
  worker.engine.release();
  EXPECT_EQ(first.read_response().status, 200);
  EXPECT_EQ(second.read_response().status, 200);
  const json over = told(worker, "task(two)");
  EXPECT_TRUE(over.at("completed"));
  EXPECT_FALSE(over.at("active"));
}

// Not another running task's preview, and no preview that the client already has.
TEST(SdapiTasks, PreviewsComeOnce) {
  const server::TaskProgress task{
      .progress = {
          .busy = true, .progress = {.step = 2, .total = 4}, .preview = "QQ==", .preview_id = 3}};
  const json fresh = json::parse(server::sdapi_task_json(task, -1));
  EXPECT_EQ(fresh.at("live_preview"), "data:image/png;base64,QQ==");
  EXPECT_EQ(fresh.at("id_live_preview"), 3);
  const json seen = json::parse(server::sdapi_task_json(task, 3));
  EXPECT_TRUE(seen.at("live_preview").is_null());
  EXPECT_EQ(seen.at("id_live_preview"), 3);
}

TEST(SdapiTasks, HaveIdsOfSomeLength) {
  ImageWorker worker;
  const json body = {{"id_task", std::string(257, 'a')}};
  EXPECT_EQ(worker.post("/internal/progress", body.dump()).status, 400);
}

TEST(ImageRequests, HaveTheirClientsName) {
  ImageWorker worker;
  worker.post("/sdapi/v1/txt2img", R"({"prompt":"a"})");
  EXPECT_EQ(worker.engine.last_request().client, "127.0.0.1");
  worker.post("/v1/images/generations", R"({"prompt":"b"})");
  EXPECT_EQ(worker.engine.last_request().client, "127.0.0.1");
  worker.get(worker.new_stream(kCat));
  EXPECT_EQ(worker.engine.last_request().client, "127.0.0.1");
}

// The fields of the queue's answer.
server::Response answer_of(const std::vector<std::string>& made) {
  return server::json_response(200, nlohmann::json{{"image", made.front()}}.dump());
}

// The server works on two clients' pictures at once, and each client ends its own.
TEST(UpscaleQueue, TwoClientsWorkAtOnce) {
  std::promise<void> begun[2];
  const auto work = [&](const std::string& image, const server::UpscaleOrder&,
                        const engine::UpscaleHooks& hooks) -> std::string {
    hooks.tile({.done = image == "first" ? 1 : 2, .total = 9});
    begun[image == "first" ? 0 : 1].set_value();
    while (hooks.going_on()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fail(Code::cancelled, "", "the picture is no longer wanted");
  };
  server::UpscaleQueue upscaler(work);
  const auto first = upscaler.submit({.client = "a", .images = {"first"}}, answer_of);
  begun[0].get_future().wait();
  const auto second = upscaler.submit({.client = "b", .images = {"second"}}, answer_of);
  begun[1].get_future().wait();
  EXPECT_EQ(upscaler.progress("a")->done, 1);
  EXPECT_EQ(upscaler.progress("b")->done, 2);
  EXPECT_EQ(upscaler.progress("other")->done, 1);
  std::promise<void> done;
  second->attach([&] { done.set_value(); });
  EXPECT_FALSE(second->take());
  upscaler.interrupt("b");
  done.get_future().wait();
  EXPECT_EQ(second->take()->status, 499);
  EXPECT_FALSE(first->take());
  upscaler.interrupt("other");
}

TEST(LargePictures, OneAtATimeWhileSmallOnesPass) {
  io::LargePictures pictures;
  constexpr int64_t kLarge = io::LargePictures::kLarge;
  auto place = pictures.enter(kLarge + 1);
  EXPECT_TRUE(place.owns_lock());
  EXPECT_FALSE(pictures.enter(kLarge).owns_lock());
  std::future<bool> next =
      std::async(std::launch::async, [&] { return pictures.enter(4 * kLarge).owns_lock(); });
  std::atomic<bool> gone = false;
  std::future<void> left = std::async(std::launch::async, [&] {
    const CancelScope scope(gone);
    pictures.enter(2 * kLarge);
  });
  gone = true;
  EXPECT_THAT([&] { left.get(); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("nobody waits")));
  place.unlock();
  EXPECT_TRUE(next.get());
}

}  // namespace
}  // namespace rbee::testing
