// Requests with pictures that an image engine decodes before it queues the requests.

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "tests/server/image_worker.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

std::string edit_request(bool stream) {
  const std::string body = cat(
      "--xyz\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nx\r\n"
      "--xyz\r\nContent-Disposition: form-data; name=\"stream\"\r\n\r\n",
      stream ? "true" : "false",
      "\r\n--xyz\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a\"\r\n\r\npicture"
      "\r\n--xyz--\r\n");
  return cat(
      "POST /v1/images/edits HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
      "Content-Type: multipart/form-data; boundary=xyz\r\nContent-Length: ",
      body.size(), "\r\n\r\n", body);
}

std::vector<std::string> requests_with_pictures() {
  const std::string picture = io::encode_base64("picture");
  const json job = {{"operation", "image_transform"}, {"prompt", "x"}, {"input_image", picture}};
  const json sdapi = {{"prompt", "x"}, {"init_images", {picture}}};
  return {request("POST", "/v1/jobs", job.dump()),
          request("POST", "/sdapi/v1/img2img", sdapi.dump()), edit_request(false),
          edit_request(true)};
}

TEST(ImagePreparing, OthersAreServedMeanwhile) {
  for (const std::string& slow : requests_with_pictures()) {
    ImageWorker worker({.hold_submit = true});
    RawClient client(worker.port());
    client.send(slow);
    ASSERT_TRUE(worker.engine.wait_submitting(1)) << slow;
    EXPECT_EQ(worker.get("/health").status, 200);
    EXPECT_EQ(worker.get_json("/info").at("status"), "busy") << slow;
    EXPECT_EQ(worker.post("/sdapi/v1/txt2img", R"({"prompt":"x"})").status, 200);
    worker.engine.let_submit();
    const RawResponse answer = client.read_response();
    EXPECT_EQ(answer.status, 200) << slow << answer.body;
    EXPECT_FALSE(answer.body.empty()) << slow;
  }
}

// The error comes before a stream begins.
TEST(ImagePreparing, WhatIsWrongIsSaidWithItsStatus) {
  for (const std::string& slow : requests_with_pictures()) {
    ImageWorker worker;
    worker.engine.refuse_with(Code::invalid_argument);
    const RawResponse answer = ask(worker.port(), slow);
    EXPECT_EQ(answer.status, 400) << slow;
    EXPECT_EQ(json::parse(answer.body).at("error").at("code"), "INVALID_REQUEST") << answer.body;
    worker.engine.refuse_with(Code::out_of_memory);
    EXPECT_EQ(ask(worker.port(), slow).status, 429) << slow;
  }
}

// All wait for the same threads; there are so many that one is refused.
TEST(ImagePreparing, SettingsAreReadBesideToo) {
  ImageWorker worker({.hold_submit = true});
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto send = [&](const std::string& text) {
    clients.push_back(std::make_unique<RawClient>(worker.port()));
    clients.back()->send(text);
  };
  for (int i = 0; i < 2; ++i) send(requests_with_pictures().front());
  ASSERT_TRUE(worker.engine.wait_submitting(2));
  const json body = {{"image", io::encode_base64(io::encode_png({1, 1, 3, {1, 2, 3}}))}};
  for (int i = 0; i < 65; ++i) send(request("POST", "/sdapi/v1/png-info", body.dump()));
  const auto refused = [&] {
    return worker.get("/metrics").body.find("outcome=\"rejected\"} 1") != std::string::npos;
  };
  while (!refused()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  worker.engine.let_submit();
  std::map<int, int> answers;
  for (const auto& client : clients) ++answers[client->read_response().status];
  EXPECT_EQ(answers, (std::map<int, int>{{200, 66}, {429, 1}}));
}

TEST(ImagePreparing, AClientThatLeavesMeanwhileCancels) {
  ImageWorker worker({.hold = true, .hold_submit = true});
  RawClient client(worker.port());
  client.send(edit_request(false));
  ASSERT_TRUE(worker.engine.wait_submitting(1));
  client.close();
  worker.engine.let_submit();
  while (worker.get_json("/info").at("status") == "busy") {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace
}  // namespace rbee::testing
