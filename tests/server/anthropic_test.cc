// Anthropic's Messages API over an engine that follows a script.

#include <gmock/gmock.h>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kMessages = "/v1/messages";

json hello() {
  return {
      {"model", "any"}, {"max_tokens", 64}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
}

// Names and payloads of a stream's events.
std::vector<std::pair<std::string, json>> events(const std::string& body) {
  std::vector<std::pair<std::string, json>> out;
  for (size_t at = 0; (at = body.find("event: ", at)) != std::string::npos;) {
    const size_t line = body.find('\n', at), end = body.find("\n\n", at);
    out.emplace_back(body.substr(at + 7, line - at - 7),
                     json::parse(body.substr(line + 7, end - line - 7)));
    at = end;
  }
  return out;
}

TEST(Anthropic, AnAnswerInOnePiece) {
  Worker worker;
  json body = hello();
  body["system"] = {{{"type", "text"}, {"text", "Be brief."}}};
  body["stop_sequences"] = {"END"};
  body["top_k"] = 5;
  const RawResponse response = worker.post(kMessages, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  json answer = json::parse(response.body);
  EXPECT_THAT(answer.at("id").get<std::string>(), StartsWith("msg_"));
  answer.erase("id");
  EXPECT_EQ(answer, json::parse(R"({"type":"message","role":"assistant","model":"hf:fake",
      "content":[{"type":"text","text":"Hello, world"}],"stop_reason":"end_turn",
      "stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,
      "cache_read_input_tokens":2,"output_tokens":3,
      "output_tokens_details":{"thinking_tokens":0}}})"));
  const engine::TextRequest asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 2U);
  EXPECT_EQ(asked.messages[0].role, "system");
  EXPECT_EQ(asked.messages[0].content, "Be brief.");
  EXPECT_THAT(asked.stop, ElementsAre("END"));
  EXPECT_EQ(asked.sampling.top_k, 5);
  EXPECT_EQ(asked.sampling.temperature, 1);
  EXPECT_EQ(asked.max_tokens, 64);
}

TEST(Anthropic, AnAssistantsMessageAtTheEndBeginsTheAnswer) {
  Worker worker;
  json body = hello();
  EXPECT_EQ(worker.post(kMessages, body.dump()).status, 200);
  EXPECT_FALSE(worker.engine.last_request().chat.continue_last);
  body["messages"].push_back({{"role", "assistant"}, {"content", "{\"a\":"}});
  EXPECT_EQ(worker.post(kMessages, body.dump()).status, 200);
  EXPECT_TRUE(worker.engine.last_request().chat.continue_last);
}

TEST(Anthropic, TurnsOfOneSpeakerAreOne) {
  Worker worker;
  json body = hello();
  body["messages"] = json::parse(R"([
      {"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]},
      {"role":"system","content":[{"type":"text","text":"s"}]},{"role":"user","content":"c"},
      {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},
      {"role":"assistant","content":"d"},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"}]},
      {"role":"user","content":"e"}])");
  const RawResponse response = worker.post(kMessages, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  std::vector<std::string> turns;
  for (const auto& message : worker.engine.last_request().messages) {
    turns.push_back(cat(message.role, ":", message.content));
  }
  EXPECT_THAT(turns, ElementsAre("user:a\n\nb", "system:s", "user:c", "assistant:", "assistant:d",
                                 "tool:r", "user:e"));
}

TEST(Anthropic, DocumentsOfTextAreText) {
  Worker worker;
  json body = hello();
  body["messages"] = json::parse(R"([{"role":"user","content":[
      {"type":"text","text":"Look:"},
      {"type":"document","title":"Notes","context":"Mine",
       "source":{"type":"text","media_type":"text/plain","data":"Grass is green."}},
      {"type":"document","source":{"type":"content","content":[{"type":"text","text":"Sky."}]},
       "citations":{"enabled":false}},
      {"type":"text","text":"What is it?"}]},
      {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[
       {"type":"document","source":{"type":"text","media_type":"text/plain","data":"r"}}]}]}])");
  const RawResponse response = worker.post(kMessages, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const auto messages = worker.engine.last_request().messages;
  EXPECT_EQ(messages.at(0).content,
            "Look:\n\nNotes\n\nMine\n\nGrass is green.\n\nSky.\n\nWhat is it?");
  EXPECT_EQ(messages.at(2).content, "r\n\n");
  for (const auto& [block, name] :
       {std::pair{R"({"type":"document","source":{"type":"base64","data":"JVBERi0="}})",
                  "messages[0].content[0].source"},
        std::pair{R"({"type":"document","source":{"type":"text","data":7}})",
                  "messages[0].content[0].source"},
        std::pair{R"({"type":"document","source":{"type":"text","data":"x"},
                   "citations":{"enabled":true}})",
                  "messages[0].content[0].citations"}}) {
    body["messages"] = {{{"role", "user"}, {"content", {json::parse(block)}}}};
    const RawResponse refused = worker.post(kMessages, body.dump());
    EXPECT_EQ(refused.status, 400) << block;
    EXPECT_THAT(refused.body, HasSubstr(name)) << block;
  }
}

TEST(Anthropic, TheAnswersFormAndEffort) {
  Worker worker;
  json body = hello();
  body["output_config"] = json::parse(R"({"effort":"max","format":{"type":"json_schema",
      "schema":{"type":"object","properties":{"a":{"type":"integer"}}}}})");
  const RawResponse response = worker.post(kMessages, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const engine::TextRequest asked = worker.engine.last_request();
  EXPECT_EQ(asked.constraint.kind, engine::Constraint::Kind::json_schema);
  EXPECT_EQ(json::parse(asked.constraint.text), body["output_config"]["format"]["schema"]);
  EXPECT_THAT(asked.chat.template_variables, HasSubstr("\"reasoning_effort\":\"max\""));
  for (const auto& [config, names] :
       {std::pair{R"(3)", "output_config"}, std::pair{R"({"format":[]})", "output_config.format"},
        std::pair{R"({"format":{"type":"text"}})", "output_config.format.type"},
        std::pair{R"({"format":{"type":"json_schema"}})", "output_config.format.schema"},
        std::pair{R"({"effort":"most"})", "output_config.effort"}}) {
    body["output_config"] = json::parse(config);
    const RawResponse refused = worker.post(kMessages, body.dump());
    EXPECT_EQ(refused.status, 400) << config;
    EXPECT_THAT(refused.body, HasSubstr(names)) << config;
  }
}

TEST(Anthropic, APromptBeyondTheContext) {
  Worker worker;
  worker.engine.set_context(20);
  json body = hello();
  body["messages"][0]["content"] = std::string(94, 'a');
  for (const bool stream : {false, true}) {
    body["stream"] = stream;
    const RawResponse response = worker.post(kMessages, body.dump());
    EXPECT_EQ(response.status, 400);
    const json error = json::parse(response.body).at("error");
    EXPECT_EQ(error.at("type"), "invalid_request_error");
    EXPECT_EQ(error.at("message"), "prompt is too long: 101 tokens > 20 maximum");
  }
}

TEST(Anthropic, ReasonsToStop) {
  const auto end = [](engine::StopReason reason, const std::string& sequence) {
    Worker worker({.script = {.reason = reason, .stop_sequence = sequence}});
    return json::parse(worker.post(kMessages, hello().dump()).body);
  };
  EXPECT_EQ(end(engine::StopReason::max_tokens, "").at("stop_reason"), "max_tokens");
  EXPECT_EQ(end(engine::StopReason::context_full, "").at("stop_reason"),
            "model_context_window_exceeded");
  const json stopped = end(engine::StopReason::stop_sequence, "END");
  EXPECT_EQ(stopped.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(stopped.at("stop_sequence"), "END");
}

TEST(Anthropic, AStream) {
  Worker worker({.script = {.pieces = {"Hel", "lo"}}});
  json body = hello();
  body["stream"] = true;
  const auto got = events(worker.post(kMessages, body.dump()).body);
  std::vector<std::string> names;
  for (const auto& [name, payload] : got) {
    names.push_back(name);
    EXPECT_EQ(payload.at("type"), name);
  }
  ASSERT_THAT(names, ElementsAre("message_start", "ping", "content_block_start",
                                 "content_block_delta", "content_block_delta", "content_block_stop",
                                 "message_delta", "message_stop"));
  EXPECT_EQ(got[0].second.at("message").at("usage"), json({{"input_tokens", 3},
                                                           {"cache_creation_input_tokens", 0},
                                                           {"cache_read_input_tokens", 2},
                                                           {"output_tokens", 0}}));
  EXPECT_EQ(got[6].second.at("usage").at("cache_read_input_tokens"), 2);
  EXPECT_EQ(got[3].second.at("delta"), json({{"type", "text_delta"}, {"text", "Hel"}}));
  EXPECT_EQ(got[6].second.at("delta").at("stop_reason"), "end_turn");
  EXPECT_EQ(got[6].second.at("usage").at("output_tokens"), 2);
}

json with_tools() {
  json body = hello();
  body["tools"] = {{{"name", "f"}, {"description", "d"}, {"input_schema", {{"type", "object"}}}}};
  return body;
}

Script calling() {
  return {.pieces = {"<think>Hm</think>Yes. <tool_call>{\"name\": \"f\", \"arg",
                     "uments\": {\"a\": 1}}</tool_call>"},
          .format = {text::ToolFormat::hermes, text::ReasoningFormat::think}};
}

TEST(Anthropic, ThinkingTextAndCallsAreBlocks) {
  Worker worker({.script = calling()});
  const json answer = json::parse(worker.post(kMessages, with_tools().dump()).body);
  EXPECT_EQ(answer.at("content"), json::parse(R"([
      {"type":"thinking","thinking":"Hm","signature":""},{"type":"text","text":"Yes."},
      {"type":"tool_use","id":"call_0","name":"f","input":{"a":1}}])"));
  EXPECT_EQ(answer.at("stop_reason"), "tool_use");
}

TEST(Anthropic, BlocksOfAStream) {
  Worker worker({.script = calling()});
  json body = with_tools();
  body["stream"] = true;
  std::string arguments;
  std::vector<std::string> kinds;
  int stops = 0;
  for (const auto& [name, payload] : events(worker.post(kMessages, body.dump()).body)) {
    if (name == "content_block_start") {
      EXPECT_EQ(payload.at("index"), kinds.size());
      kinds.push_back(payload.at("content_block").at("type"));
    }
    stops += name == "content_block_stop";
    if (name == "content_block_delta") {
      arguments += payload.at("delta").value("partial_json", "");
    }
    if (name == "message_delta") {
      EXPECT_EQ(payload.at("delta").at("stop_reason"), "tool_use");
    }
  }
  EXPECT_THAT(kinds, ElementsAre("thinking", "text", "tool_use"));
  EXPECT_EQ(stops, 3);
  EXPECT_EQ(arguments, R"({"a": 1})");
}

TEST(Anthropic, ToolsAndTheirResultsReachTheEngine) {
  Worker worker;
  json body = with_tools();
  body["tool_choice"] = {{"type", "tool"}, {"name", "f"}, {"disable_parallel_tool_use", true}};
  body["thinking"] = {{"type", "enabled"}, {"budget_tokens", 1024}};
  body["messages"] = json::parse(R"([{"role":"user","content":"Hi"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":""},
       {"type":"text","text":"Yes."},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1",
       "content":[{"type":"text","text":"7"}]},{"type":"text","text":"And?"}]}])");
  const RawResponse response = worker.post(kMessages, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const engine::TextRequest asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 4U);
  EXPECT_EQ(asked.messages[1].reasoning, "Hm");
  EXPECT_EQ(asked.messages[1].tool_calls.at(0).arguments, R"({"a":1})");
  EXPECT_EQ(asked.messages[2].role, "tool");
  EXPECT_EQ(asked.messages[2].tool_call_id, "t1");
  EXPECT_EQ(asked.messages[2].content, "7");
  EXPECT_EQ(asked.messages[3].content, "And?");
  EXPECT_EQ(asked.chat.tool, "f");
  EXPECT_FALSE(asked.chat.parallel_tool_calls);
  EXPECT_EQ(json::parse(asked.chat.template_variables),
            json({{"enable_thinking", true}, {"thinking", true}, {"thinking_budget", 1024}}));
  EXPECT_EQ(asked.chat.reasoning_budget, 1024);
  ASSERT_EQ(asked.chat.tools.size(), 1U);
  EXPECT_EQ(asked.chat.tools[0].parameters, R"({"type":"object"})");
}

// In another order the chat differs from what the model wrote, and its cached prefix is lost.
TEST(Anthropic, InputsOfEarlierCallsKeepTheirOrder) {
  Worker worker;
  const RawResponse response = worker.post(kMessages, R"({"max_tokens":5,"messages":[
      {"role":"user","content":"Hi"},
      {"role":"assistant","content":[{"type":"text","text":"Yes."},
       {"type":"tool_use","id":"t1","name":"f","input":{"z":1,"a":{"y":2,"b":3}}},
       {"type":"tool_use","id":"t2","name":"f"}]},
      {"role":"user","content":{"type":"tool_result","tool_use_id":"t1","content":"r"}},
      {"role":"assistant","content":{"type":"tool_use","id":"t3","name":"f","input":{"c":1,"b":2}}},
      {"role":"user","content":"And?"}]})");
  ASSERT_EQ(response.status, 200) << response.body;
  std::vector<std::string> inputs;
  for (const auto& message : worker.engine.last_request().messages) {
    for (const auto& call : message.tool_calls) inputs.push_back(call.arguments);
  }
  EXPECT_THAT(inputs, ElementsAre(R"({"z":1,"a":{"y":2,"b":3}})", "{}", R"({"c":1,"b":2})"));
}

TEST(Anthropic, ThinkingIsSwitchedOnAndOff) {
  Worker worker;
  const auto asked = [&](const json& thinking) {
    json body = hello();
    body["thinking"] = thinking;
    EXPECT_EQ(worker.post(kMessages, body.dump()).status, 200);
    return worker.engine.last_request().chat;
  };
  const engine::ChatOptions off = asked({{"type", "disabled"}});
  EXPECT_EQ(off.reasoning_budget, 0);
  EXPECT_EQ(json::parse(off.template_variables).at("enable_thinking"), false);
  const engine::ChatOptions on = asked({{"type", "enabled"}});
  EXPECT_EQ(on.reasoning_budget, std::nullopt);
  EXPECT_EQ(json::parse(on.template_variables).at("enable_thinking"), true);
  const engine::ChatOptions own = asked({{"type", "adaptive"}});
  EXPECT_EQ(own.reasoning_budget, std::nullopt);
  EXPECT_EQ(own.template_variables, "");
}

TEST(Anthropic, AStreamThatFails) {
  Worker worker({.script = {.failure = engine::Failed{Code::out_of_memory, "no room"}}});
  json body = hello();
  body["stream"] = true;
  const auto got = events(worker.post(kMessages, body.dump()).body);
  EXPECT_EQ(got.back().first, "error");
  EXPECT_EQ(got.back().second.at("error").at("type"), "overloaded_error");
  EXPECT_EQ(got.back().second.at("error").at("message"), "no room");
}

TEST(Anthropic, WhatIsWrongIsNamed) {
  Worker worker;
  const auto message = [&](const char* key, const json& value) {
    json body = hello();
    value.is_null() ? body.erase(key) : (body[key] = value, size_t{0});
    const RawResponse response = worker.post(kMessages, body.dump());
    EXPECT_EQ(response.status, 400) << body;
    const json answer = json::parse(response.body);
    EXPECT_EQ(answer.at("type"), "error");
    EXPECT_EQ(answer.at("error").at("type"), "invalid_request_error");
    return answer.at("error").at("message").get<std::string>();
  };
  EXPECT_THAT(message("max_tokens", nullptr), HasSubstr("max_tokens is missing"));
  EXPECT_THAT(message("temperature", 1.5), HasSubstr("temperature must be from 0 to 1"));
  EXPECT_THAT(message("messages", json::array()), HasSubstr("messages must be"));
  EXPECT_THAT(message("messages", {{{"role", "tool"}, {"content", "x"}}}),
              HasSubstr("messages[0].role"));
  EXPECT_THAT(message("stop_sequences", {""}), HasSubstr("stop_sequences[0]"));
  EXPECT_THAT(message("metadata", {{"user_id", std::string(300, 'x')}}),
              HasSubstr("metadata.user_id"));
  const json image = {{{"type", "image"}, {"source", {{"type", "base64"}}}}};
  EXPECT_THAT(message("messages", {{{"role", "user"}, {"content", image}}}),
              HasSubstr("messages[0].content"));
  EXPECT_THAT(message("thinking", {{"type", "loud"}}), HasSubstr("thinking.type"));
  EXPECT_THAT(message("thinking", {{"type", "enabled"}, {"budget_tokens", 0}}),
              HasSubstr("thinking.budget_tokens must be from 1 to"));
  EXPECT_THAT(message("tools", {{{"type", "bash_20250124"}, {"name", "bash"}}}),
              HasSubstr("tools[0].type"));
  EXPECT_THAT(message("tool_choice", {{"type", "any"}}), HasSubstr("tool_choice needs tools"));
  const json result = {{{"type", "tool_result"}, {"tool_use_id", "t1"}}};
  EXPECT_THAT(message("messages", {{{"role", "assistant"}, {"content", result}}}),
              HasSubstr("messages[0].content"));
}

TEST(Anthropic, AFullQueueIsARateLimit) {
  Worker worker;
  worker.engine.refuse_with(Code::out_of_memory);
  const RawResponse response = worker.post(kMessages, hello().dump());
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.headers.at("retry-after"), "1");
  EXPECT_EQ(json::parse(response.body).at("error").at("type"), "rate_limit_error");
}

TEST(Anthropic, CountsTokensOfThePrompt) {
  Worker worker;
  const RawResponse response = worker.post("/v1/messages/count_tokens", hello().dump());
  EXPECT_EQ(response.body, R"({"input_tokens":9})");  // "user: Hi\n"
  const RawResponse wrong = worker.post("/v1/messages/count_tokens", "{}");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(json::parse(wrong.body).at("error").at("type"), "invalid_request_error");
}

TEST(Anthropic, ModelsInItsForm) {
  Worker worker;
  const char* version = "anthropic-version: 2023-06-01\r\n";
  const json list = json::parse(worker.get("/v1/models", version).body);
  ASSERT_EQ(list.at("data").size(), 1u);
  const json& entry = list.at("data")[0];
  EXPECT_EQ(entry.at("type"), "model");
  EXPECT_EQ(entry.at("id"), "hf:fake");
  EXPECT_EQ(entry.at("display_name"), "hf:fake");
  EXPECT_THAT(entry.at("created_at").get<std::string>(),
              ::testing::MatchesRegex("20..-..-..T..:..:..\\....Z"));
  EXPECT_EQ(list.at("has_more"), false);
  EXPECT_EQ(list.at("first_id"), "hf:fake");
  EXPECT_EQ(list.at("last_id"), "hf:fake");
  EXPECT_EQ(json::parse(worker.get("/v1/models/hf:fake", version).body), entry);
  const RawResponse none = worker.get("/v1/models/no/such", version);
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(
      json::parse(none.body),
      json({{"type", "error"},
            {"error",
             {{"type", "not_found_error"}, {"message", "The model 'no/such' does not exist"}}}}));
}

TEST(Anthropic, AnswersHaveTheRequestsNameUnderItsHeader) {
  Worker worker({.token = "secret"});
  const std::string key = "x-api-key: secret\r\n", name = "X-Request-ID: r-1\r\n";
  const auto post = [&](std::string_view path, const std::string& body,
                        const std::string& headers) {
    return ask(worker.port(), request("POST", path, body, headers));
  };
  json stream = hello();
  stream["stream"] = true;
  for (const RawResponse& response :
       {post(kMessages, hello().dump(), key + name), post(kMessages, stream.dump(), key + name),
        post(kMessages, "{}", key + name), post(kMessages, hello().dump(), name),
        post("/v1/messages/count_tokens", hello().dump(), key + name),
        post("/v1/messages/batches", hello().dump(), key + name),
        worker.get("/v1/models", cat(key, name, "anthropic-version: 2023-06-01\r\n"))}) {
    ASSERT_TRUE(response.headers.contains("request-id")) << response.status << response.body;
    EXPECT_EQ(response.headers.at("request-id"), "r-1");
    EXPECT_EQ(response.headers.at("x-request-id"), "r-1");
  }
  const RawResponse unnamed = post(kMessages, hello().dump(), key);
  EXPECT_EQ(unnamed.headers.at("request-id"), unnamed.headers.at("x-request-id"));
  EXPECT_FALSE(worker.get("/v1/models", key).headers.contains("request-id"));
}

}  // namespace
}  // namespace rbee::testing
