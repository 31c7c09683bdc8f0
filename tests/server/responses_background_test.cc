// OpenAI's responses that are made in the background.

#include <gmock/gmock.h>

#include <thread>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kResponses = "/v1/responses";

json begin(const Worker& worker, json body = json::object()) {
  body.update({{"input", "Hi"}, {"background", true}});
  const RawResponse response = worker.post(kResponses, body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body);
}

std::string path_of(const json& answer) {
  return cat("/v1/responses/", answer.at("id").get<std::string>());
}

// The response once it has this status.
json wait_for(const Worker& worker, const std::string& path, const std::string& status) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (true) {
    json now = json::parse(worker.get(path).body);
    if (now.value("status", "") == status) return now;
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error(now.dump());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::vector<std::string> names_of(const std::string& body) {
  std::vector<std::string> out;
  for (const std::string& payload : payloads(body)) {
    out.push_back(json::parse(payload).at("type"));
  }
  return out;
}

TEST(BackgroundResponses, OneIsMadeWithoutItsClient) {
  Worker worker({.script = {.hold_before = true}});
  const json queued = begin(worker);
  EXPECT_EQ(queued.at("status"), "queued");
  EXPECT_EQ(queued.at("background"), true);
  EXPECT_EQ(queued.at("output"), json::array());
  const std::string path = path_of(queued);
  EXPECT_EQ(json::parse(worker.get(path).body).at("status"), "queued");
  EXPECT_EQ(json::parse(worker.get("/health").body).at("background"), 1);
  const json more = {{"input", "More"}, {"previous_response_id", queued.at("id")}};
  EXPECT_EQ(worker.post(kResponses, more.dump()).status, 400);  // it is not there yet
  const json items = json::parse(worker.get(path + "/input_items").body);
  EXPECT_EQ(items.at("data").at(0).at("content").at(0).at("text"), "Hi");
  worker.engine.release();
  const json done = wait_for(worker, path, "completed");
  EXPECT_EQ(done.at("output").at(0).at("content").at(0).at("text"), "Hello, world");
  EXPECT_EQ(done.at("id"), queued.at("id"));
  EXPECT_EQ(done.at("created_at"), queued.at("created_at"));
  EXPECT_FALSE(json::parse(worker.get("/health").body).contains("background"));
  EXPECT_EQ(worker.post(kResponses, more.dump()).status, 200);
  EXPECT_THAT(worker.get(path + "?stream=true").body, HasSubstr("background and stream"));
  EXPECT_EQ(ask(worker.port(), request("DELETE", path)).status, 200);
  EXPECT_EQ(worker.get(path).status, 404);
}

TEST(BackgroundResponses, AStreamGoesOnWhereItBroke) {
  Worker worker({.script = {.hold_after = true}});
  std::string path, first;
  {
    RawClient client(worker.port());
    const json body = {{"input", "Hi"}, {"background", true}, {"stream", true}};
    client.send(request("POST", kResponses, body.dump()));
    first = client.read_until("world");
    path = path_of(json::parse(payloads(first + "\n\n").front()).at("response"));
  }  // it leaves
  RawClient reader(worker.port());
  reader.send(request("GET", path + "?stream=true&starting_after=3"));
  std::string rest = reader.read_until("world");
  EXPECT_EQ(json::parse(payloads(rest).front()).at("sequence_number"), 4);
  worker.engine.release();
  rest += reader.read_until("response.completed\",");
  wait_for(worker, path, "completed");
  const RawResponse all = worker.get(path + "?stream=true");
  EXPECT_EQ(all.headers.at("content-type"), "text/event-stream");
  EXPECT_THAT(
      names_of(all.body),
      ElementsAre("response.created", "response.queued", "response.in_progress",
                  "response.output_item.added", "response.content_part.added",
                  "response.output_text.delta", "response.output_text.delta",
                  "response.output_text.delta", "response.output_text.done",
                  "response.content_part.done", "response.output_item.done", "response.completed"));
  int number = 0;
  for (const std::string& payload : payloads(all.body)) {
    EXPECT_EQ(json::parse(payload).at("sequence_number"), number++);
  }
  EXPECT_EQ(json::parse(payloads(all.body).back()).at("response"),
            json::parse(worker.get(path).body));
  EXPECT_THAT(names_of(worker.get(path + "?stream=true&starting_after=10").body),
              ElementsAre("response.completed"));
  EXPECT_EQ(worker.get(path + "?stream=true&starting_after=99").body, "");
  for (const char* bad : {"-1", "x", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(worker.get(cat(path, "?stream=true&starting_after=", bad)).status, 400) << bad;
  }
  EXPECT_EQ(worker.get(path + "?stream=maybe").status, 400);
  EXPECT_EQ(json::parse(worker.get(path + "?stream=false").body).at("status"), "completed");
}

TEST(BackgroundResponses, OneIsCancelledOnce) {
  Worker worker({.script = {.hold_after = true}});
  const json queued = begin(worker, {{"stream", false}});
  const std::string path = path_of(queued);
  wait_for(worker, path, "in_progress");
  const json cancelled = json::parse(worker.post(path + "/cancel", "").body);
  EXPECT_EQ(cancelled.at("status"), "cancelled");
  EXPECT_EQ(json::parse(worker.get(path).body), cancelled);
  EXPECT_EQ(json::parse(worker.post(path + "/cancel", "").body), cancelled);
  const json more = {{"input", "More"}, {"previous_response_id", queued.at("id")}};
  EXPECT_EQ(worker.post(kResponses, more.dump()).status, 400);
  // Nothing runs any more.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (worker.service.busy() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_FALSE(worker.service.busy());
  EXPECT_EQ(worker.post("/v1/responses/resp_0/cancel", "").status, 404);
}

TEST(BackgroundResponses, WhatEndedOrHasAClientIsNotCancelled) {
  Worker worker;
  const std::string path = path_of(begin(worker));
  const json done = wait_for(worker, path, "completed");
  EXPECT_EQ(json::parse(worker.post(path + "/cancel", "").body), done);
  const json plain = json::parse(worker.post(kResponses, R"({"input":"Hi"})").body);
  EXPECT_EQ(plain.at("background"), false);
  EXPECT_EQ(worker.post(path_of(plain) + "/cancel", "").status, 400);
}

TEST(BackgroundResponses, DeletingOneEndsIt) {
  Worker worker({.script = {.hold_after = true}});
  const std::string path = path_of(begin(worker));
  wait_for(worker, path, "in_progress");
  EXPECT_EQ(ask(worker.port(), request("DELETE", path)).status, 200);
  EXPECT_EQ(worker.get(path).status, 404);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (worker.service.busy() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_FALSE(worker.service.busy());
  EXPECT_EQ(worker.get(path).status, 404);
}

TEST(BackgroundResponses, AFailureIsKept) {
  Worker worker({.script = {.failure = engine::Failed{Code::out_of_memory, "it is full"}}});
  const std::string path = path_of(begin(worker, {{"stream", false}}));
  const json failed = wait_for(worker, path, "failed");
  EXPECT_THAT(failed.at("error").at("message").get<std::string>(), HasSubstr("it is full"));
}

TEST(BackgroundResponses, OnlyTheirOwnClientsFindThem) {
  Worker worker({.script = {.hold_after = true}, .token = "secret"});
  const auto as = [](const char* sender) {
    return cat("Authorization: Bearer secret\r\nX-Rbee-Sender: ", sender, "\r\n");
  };
  const json body = {{"input", "Hi"}, {"background", true}, {"stream", false}};
  const std::string path = path_of(
      json::parse(ask(worker.port(), request("POST", kResponses, body.dump(), as("a"))).body));
  for (const char* method : {"GET", "DELETE"}) {
    EXPECT_EQ(ask(worker.port(), request(method, path, {}, as("b"))).status, 404);
  }
  EXPECT_EQ(ask(worker.port(), request("POST", path + "/cancel", {}, as("b"))).status, 404);
  EXPECT_EQ(ask(worker.port(), request("POST", path + "/cancel", {}, as("a"))).status, 200);
}

TEST(BackgroundResponses, TheyNeedTheStore) {
  Worker worker;
  const json unkept = {{"input", "Hi"}, {"background", true}, {"store", false}};
  const RawResponse refused = worker.post(kResponses, unkept.dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json::parse(refused.body).at("error").at("param"), "background");
  Worker off({.stored = {.bytes = 0}});
  const RawResponse without =
      off.post(kResponses, json({{"input", "Hi"}, {"background", true}}).dump());
  EXPECT_EQ(without.status, 400);
  EXPECT_THAT(without.body, HasSubstr("--response-store-mib"));
}

// The client that asks reads them all, whether or not the worker is faster than its reading and the
// room ends even before the first.
TEST(BackgroundResponses, EventsBeyondTheirRoomAreNotKept) {
  const std::vector<std::string> pieces(300, "piece");
  for (const size_t bytes : {100'000, 12'000, 800}) {
    Worker worker({.script = {.pieces = pieces}, .stored = {.bytes = bytes}});
    const json body = {{"input", "Hi"}, {"background", true}, {"stream", true}};
    const RawResponse all = worker.post(kResponses, body.dump());
    EXPECT_EQ(all.headers.at("content-type"), "text/event-stream") << bytes;
    const std::vector<std::string> events = payloads(all.body);
    ASSERT_GT(events.size(), 300) << bytes;
    EXPECT_EQ(json::parse(events.back()).at("type"), "response.completed");
    const std::string path = path_of(json::parse(events.front()).at("response"));
    // The response itself is kept if the store has room for it.
    EXPECT_EQ(worker.get(path).status, bytes > 1000 ? 200 : 404);
    EXPECT_EQ(worker.get(path + "?stream=true").status, bytes > 1000 ? 400 : 404);
  }
}

}  // namespace
}  // namespace rbee::testing
