// Cohere's chats over an engine that follows a script.

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

constexpr const char* kPath = "/v2/chat";
constexpr const char* kTools =
    R"(,"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}])";

std::string chat(const std::string& more) {
  return cat(R"({"model":"x","messages":[{"role":"user","content":"Hi"}])", more, "}");
}

Script calling() {
  return {.pieces = {"<think>Hm</think>", R"(<tool_call>{"name": "look", "arguments": )",
                     R"({"a": 1}}</tool_call>)"},
          .format = {text::ToolFormat::hermes, text::ReasoningFormat::think}};
}

json answer_of(const Worker& worker, const std::string& more) {
  const RawResponse response = worker.post(kPath, chat(more));
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body);
}

std::vector<json> events_of(const Worker& worker, const std::string& more) {
  std::vector<json> out;
  for (const std::string& data : payloads(worker.post(kPath, chat(more)).body)) {
    out.push_back(json::parse(data));
  }
  return out;
}

TEST(Cohere, AnAnswerInOnePiece) {
  Worker worker;
  const json answer = answer_of(worker, R"(,"temperature":0.5,"p":0.9,"k":7,"max_tokens":9)");
  EXPECT_EQ(answer.at("message"), json::parse(R"({"role":"assistant",
      "content":[{"type":"text","text":"Hello, world"}]})"));
  EXPECT_EQ(answer.at("finish_reason"), "COMPLETE");
  EXPECT_TRUE(answer.at("usage").at("tokens").contains("output_tokens"));
  const engine::TextRequest asked = worker.engine.last_request();
  EXPECT_FLOAT_EQ(asked.sampling.top_p, 0.9F);
  EXPECT_EQ(asked.sampling.top_k, 7);
  EXPECT_EQ(asked.max_tokens, 9);
}

TEST(Cohere, AStreamOfText) {
  Worker worker;
  const std::vector<json> events = events_of(worker, R"(,"stream":true)");
  std::vector<std::string> types;
  for (const json& event : events) types.push_back(event.at("type"));
  EXPECT_THAT(types, ElementsAre("message-start", "content-start", "content-delta", "content-delta",
                                 "content-delta", "content-end", "message-end"));
  EXPECT_EQ(events.at(2).at("delta").at("message").at("content").at("text"), "Hello");
  EXPECT_EQ(events.back().at("delta").at("finish_reason"), "COMPLETE");
}

TEST(Cohere, CallsAndTheirPlan) {
  Worker worker({.script = calling()});
  const json message = answer_of(worker, kTools).at("message");
  EXPECT_EQ(message.at("tool_plan"), "Hm");
  EXPECT_FALSE(message.contains("content"));
  EXPECT_EQ(message.at("tool_calls"), json::parse(R"([{"id":"call_0","type":"function",
      "function":{"name":"look","arguments":"{\"a\": 1}"}}])"));
  const std::vector<json> events = events_of(worker, cat(R"(,"stream":true)", kTools));
  std::string plan, arguments;
  for (const json& event : events) {
    const json part = event.value("delta", json::object()).value("message", json::object());
    if (event.at("type") == "tool-plan-delta") plan += part.at("tool_plan");
    if (event.at("type") != "tool-call-delta") continue;
    EXPECT_EQ(event.at("index"), 0);
    arguments += part.at("tool_calls").at("function").at("arguments");
  }
  EXPECT_EQ(plan, "Hm");
  EXPECT_EQ(arguments, R"({"a": 1})");
  EXPECT_EQ(events.back().at("delta").at("finish_reason"), "TOOL_CALL");
}

TEST(Cohere, ToolChoicesReachTheEngine) {
  Worker worker;
  answer_of(worker, cat(R"(,"tool_choice":"NONE")", kTools));
  EXPECT_EQ(worker.engine.last_request().chat.tool_choice, engine::ToolChoice::none);
  answer_of(worker, cat(R"(,"strict_tools":true,"tool_choice":"REQUIRED")", kTools));
  const engine::ChatOptions asked = worker.engine.last_request().chat;
  EXPECT_EQ(asked.tool_choice, engine::ToolChoice::required);
  EXPECT_TRUE(asked.tools.at(0).strict);
}

TEST(Cohere, MessagesReachTheEngine) {
  Worker worker;
  const RawResponse response = worker.post(kPath, R"({"messages":[{"role":"user","content":"Hi"},
      {"role":"assistant","tool_plan":"Hm","tool_calls":[{"id":"c1","type":"function",
       "function":{"name":"look","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c1","content":[{"type":"document",
       "document":{"data":"7"}},{"type":"document","document":{"data":{"n":8}}}]}],
      "stop_sequences":["END"],"response_format":{"type":"json_object",
       "json_schema":{"type":"object","properties":{"z":{},"a":{}}}}})");
  ASSERT_EQ(response.status, 200) << response.body;
  const engine::TextRequest asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 3U);
  EXPECT_EQ(asked.messages[1].reasoning, "Hm");
  EXPECT_EQ(asked.messages[1].tool_calls.size(), 1U);
  EXPECT_EQ(asked.messages[2].content, "7\n{\"n\":8}");
  EXPECT_THAT(asked.stop, ElementsAre("END"));
}

TEST(Cohere, WhatIsWrongIsNamed) {
  Worker worker;
  for (const auto& [more, field] : std::vector<std::pair<const char*, const char*>>{
           {R"(,"tool_choice":"auto")", "tool_choice"},
           {R"(,"p":2)", "p"},
           {R"(,"documents":[{"data":"x"}])", "documents"},
           {R"(,"response_format":{"type":"xml"})", "response_format"}}) {
    const RawResponse response = worker.post(kPath, chat(more));
    EXPECT_EQ(response.status, 400) << more;
    EXPECT_THAT(json::parse(response.body).at("message").get<std::string>(),
                ::testing::HasSubstr(field))
        << more;
  }
}

}  // namespace
}  // namespace rbee::testing
