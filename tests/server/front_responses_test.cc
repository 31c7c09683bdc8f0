// Stored responses behind `rbee serve`: a request about one goes to the worker that holds it.

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/server/front_harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kResponses = "/v1/responses";

std::string id_of(const RawResponse& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body).at("id");
}

json follow_up(const std::string& id) {
  return {{"input", "More"}, {"previous_response_id", id}};
}

TEST(FrontResponses, RequestsAboutAResponseReachTheWorkerThatHoldsIt) {
  Front front(json::array({fake("a", "any", 2)}));
  front.workers(0, 2);
  // Requests take turns among workers that are equally busy.
  for (int i = 0; i < 4; ++i) {
    const std::string id = id_of(front.post(kResponses, {{"input", "Hi"}}));
    const std::string path = cat("/v1/responses/", id);
    for (int again = 0; again < 3; ++again) {
      EXPECT_NE(id_of(front.post(kResponses, follow_up(id))), id);
      // OpenAI's client says so of a body that is not there too.
      EXPECT_EQ(id_of(front.get(path, "Content-Type: application/json\r\n")), id);
      EXPECT_EQ(front.get(path + "/input_items").status, 200);
      EXPECT_EQ(front.post("/responses/input_tokens", follow_up(id)).status, 200);
    }
    EXPECT_EQ(ask(front.port(), request("DELETE", path)).status, 200);
    EXPECT_EQ(front.get(path).status, 404);
  }
}

TEST(FrontResponses, AReferenceReachesTheWorkerThatHoldsItsItem) {
  Front front(json::array({fake("a", "any", 2)}));
  front.workers(0, 2);
  for (int i = 0; i < 4; ++i) {
    const RawResponse first = front.post(kResponses, {{"input", "Hi"}});
    const json said = json::parse(first.body).at("output").at(0).at("id");
    for (const json& reference :
         {json{{"type", "item_reference"}, {"id", said}}, json{{"id", said}}}) {
      const json more = {{"input", {{{"role", "user"}, {"content", "Hi"}}, reference}}};
      for (int again = 0; again < 3; ++again) id_of(front.post(kResponses, more));
    }
  }
  // Messages may have ids, which say nothing.
  const json message = {
      {"id", "msg_1"}, {"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "Hi"}}}}};
  id_of(front.post(kResponses, {{"input", {message}}}));
  const json none = {{"type", "item_reference"}, {"id", "msg_1"}};
  EXPECT_EQ(front.post(kResponses, {{"input", {none}}}).status, 404);
}

TEST(FrontResponses, RequestsAboutAConversationReachTheWorkerThatHoldsIt) {
  Front front(json::array({fake("a", "any", 2)}));
  front.workers(0, 2);
  for (int i = 0; i < 4; ++i) {
    const std::string id = id_of(front.post("/v1/conversations", json::object()));
    const std::string path = cat("/v1/conversations/", id);
    for (const json& by : {json(id), json({{"id", id}}), json(id)}) {
      id_of(front.post(kResponses, {{"input", "Hi"}, {"conversation", by}}));
      EXPECT_EQ(id_of(front.get(path)), id);
    }
    const RawResponse items = front.get(path + "/items");
    ASSERT_EQ(items.status, 200);
    EXPECT_EQ(json::parse(items.body).at("data").size(), 6u);
    EXPECT_EQ(ask(front.port(), request("DELETE", path)).status, 200);
    EXPECT_EQ(front.get(path).status, 404);
  }
}

TEST(FrontResponses, AConversationIsOfTheModelWhoseWorkerHoldsIt) {
  Front front(json::array({fake("a", "any"), fake("b", "any")}));
  front.wait_ready();
  const std::string id = id_of(front.post("/v1/conversations", {{"model", "b"}}));
  json body = {{"input", "Hi"}, {"conversation", id}};
  EXPECT_EQ(front.post(kResponses, body).status, 200);
  body["model"] = "a";
  const RawResponse other = front.post(kResponses, body);
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(json::parse(other.body).at("error").at("param"), "conversation");
  EXPECT_THAT(other.body, HasSubstr("of the model 'b'"));
  body["conversation"] = "conv_0";
  EXPECT_EQ(front.post(kResponses, body).status, 404);
}

TEST(FrontResponses, WhatNoWorkerHoldsIsNotFound) {
  Front front(json::array({fake("a", "any"), fake("b", "any")}));
  front.wait_ready();
  const RawResponse unknown = front.post(kResponses, follow_up("resp_0"));
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(json::parse(unknown.body).at("error").at("code"), "previous_response_not_found");
  EXPECT_EQ(front.get("/v1/responses/resp_0").status, 404);

  json asked = {{"input", "Hi"}, {"model", "b"}};
  const std::string id = id_of(front.post(kResponses, asked));
  // The first model is not the one that holds it.
  EXPECT_EQ(front.post(kResponses, follow_up(id)).status, 200);
  asked["model"] = "a";
  asked["previous_response_id"] = id;
  const RawResponse other = front.post(kResponses, asked);
  EXPECT_EQ(other.status, 400);
  EXPECT_THAT(other.body, HasSubstr("of the model 'b'"));
  // A field that other paths ignore.
  json chat_body = chat("a", "Hi");
  chat_body["previous_response_id"] = id;
  EXPECT_EQ(front.post("/v1/chat/completions", chat_body).status, 200);

  // The worker's memory ends with it.
  kill(front.workers(1, 1).at(0).at("pid").get<pid_t>(), SIGKILL);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (front.workers(1, 1).at(0).at("restarts") == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const RawResponse lost = front.post(kResponses, follow_up(id));
  EXPECT_EQ(lost.status, 400);
  EXPECT_EQ(json::parse(lost.body).at("error").at("code"), "previous_response_not_found");
}

}  // namespace
}  // namespace rbee::testing
