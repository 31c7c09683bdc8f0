// OpenAI's Responses API over an engine that follows a script.

#include <gmock/gmock.h>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr const char* kResponses = "/v1/responses";

TEST(Responses, AnAnswerInOnePiece) {
  Worker worker;
  const json body = {{"model", "any"},
                     {"instructions", "Be brief."},
                     {"input", "Hi"},
                     {"max_output_tokens", 32},
                     {"store", true}};
  const RawResponse response = worker.post(kResponses, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const json answer = json::parse(response.body);
  EXPECT_THAT(answer.at("id").get<std::string>(), StartsWith("resp_"));
  EXPECT_EQ(answer.at("object"), "response");
  EXPECT_EQ(answer.at("status"), "completed");
  EXPECT_EQ(answer.at("store"), false);
  EXPECT_EQ(answer.at("max_output_tokens"), 32);
  EXPECT_EQ(answer.at("instructions"), "Be brief.");
  const json& item = answer.at("output").at(0);
  EXPECT_EQ(item.at("role"), "assistant");
  EXPECT_EQ(item.at("content").at(0).at("type"), "output_text");
  EXPECT_EQ(item.at("content").at(0).at("text"), "Hello, world");
  EXPECT_EQ(answer.at("usage").at("total_tokens"), 8);
  const engine::Request asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 2U);
  EXPECT_EQ(asked.messages[0].role, "system");
  EXPECT_EQ(asked.messages[1].content, "Hi");
  EXPECT_EQ(asked.max_tokens, 32);
}

TEST(Responses, AChatIsItsInput) {
  Worker worker({.script = {.reason = engine::StopReason::max_tokens}});
  const json body = json::parse(R"({"input":[
      {"role":"developer","content":"Rules"},
      {"type":"message","role":"user","content":[{"type":"input_text","text":"One"}]},
      {"role":"assistant","content":[{"type":"output_text","text":"Two"}]},
      {"role":"user","content":"Three"}]})");
  const json answer = json::parse(worker.post(kResponses, body.dump()).body);
  EXPECT_EQ(answer.at("status"), "incomplete");
  EXPECT_EQ(answer.at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(answer.at("max_output_tokens"), nullptr);
  const engine::Request asked = worker.engine.last_request();
  std::vector<std::string> told;
  for (const auto& message : asked.messages) told.push_back(message.role + " " + message.content);
  EXPECT_THAT(told, ElementsAre("system Rules", "user One", "assistant Two", "user Three"));
}

TEST(Responses, AStream) {
  Worker worker({.script = {.pieces = {"Hel", "lo"}}});
  const RawResponse response = worker.post(kResponses, R"({"input":"Hi","stream":true})");
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  std::vector<std::string> types;
  json last;
  for (const std::string& payload : payloads(response.body)) {
    last = json::parse(payload);
    EXPECT_EQ(last.at("sequence_number"), types.size());
    types.push_back(last.at("type"));
  }
  EXPECT_THAT(types, ElementsAre("response.created", "response.in_progress",
                                 "response.output_item.added", "response.content_part.added",
                                 "response.output_text.delta", "response.output_text.delta",
                                 "response.output_text.done", "response.content_part.done",
                                 "response.output_item.done", "response.completed"));
  EXPECT_EQ(last.at("response").at("output").at(0).at("content").at(0).at("text"), "Hello");
}

TEST(Responses, AStreamThatFails) {
  Worker worker({.script = {.failure = engine::Failed{Code::internal, "broken"}}});
  const auto events = payloads(worker.post(kResponses, R"({"input":"Hi","stream":true})").body);
  const json last = json::parse(events.back());
  EXPECT_EQ(last.at("type"), "response.failed");
  EXPECT_EQ(last.at("response").at("error").at("message"), "broken");
}

TEST(Responses, WhatIsWrongIsNamed) {
  Worker worker;
  const auto param = [&](const char* body) {
    const RawResponse response = worker.post(kResponses, body);
    EXPECT_EQ(response.status, 400) << body;
    const json error = json::parse(response.body).at("error");
    EXPECT_EQ(error.at("type"), "invalid_request_error");
    return error.at("param");
  };
  EXPECT_EQ(param("{}"), "input");
  EXPECT_EQ(param(R"({"input":""})"), "input");
  EXPECT_EQ(param(R"({"input":[{"role":"user"}]})"), "input[0].content");
  EXPECT_EQ(param(R"({"input":[{"type":"function_call"}]})"), "input[0].type");
  EXPECT_EQ(param(R"({"input":"x","previous_response_id":"resp_1"})"), "previous_response_id");
  EXPECT_EQ(param(R"({"input":"x","tools":[{"type":"web_search"}]})"), "tools");
  EXPECT_EQ(param(R"({"input":"x","max_output_tokens":0})"), "max_output_tokens");
}

}  // namespace
}  // namespace rbee::testing
