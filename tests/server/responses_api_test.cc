// OpenAI's Responses API over an engine that follows a script.

#include <gmock/gmock.h>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kResponses = "/v1/responses";

TEST(Responses, AnAnswerInOnePiece) {
  Worker worker;
  const json body = {{"model", "any"},          {"instructions", "Be brief."},   {"input", "Hi"},
                     {"max_output_tokens", 32}, {"metadata", {{"ticket", "7"}}}, {"store", true}};
  const RawResponse response = worker.post(kResponses, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const json answer = json::parse(response.body);
  EXPECT_THAT(answer.at("id").get<std::string>(), StartsWith("resp_"));
  EXPECT_EQ(answer.at("object"), "response");
  EXPECT_EQ(answer.at("status"), "completed");
  EXPECT_EQ(answer.at("store"), true);
  EXPECT_EQ(answer.at("max_output_tokens"), 32);
  EXPECT_EQ(answer.at("instructions"), "Be brief.");
  const json& item = answer.at("output").at(0);
  EXPECT_EQ(item.at("role"), "assistant");
  EXPECT_EQ(item.at("content").at(0).at("type"), "output_text");
  EXPECT_EQ(item.at("content").at(0).at("text"), "Hello, world");
  EXPECT_EQ(answer.at("usage").at("total_tokens"), 8);
  EXPECT_EQ(answer.at("usage").at("input_tokens_details").at("cached_tokens"), 2);
  EXPECT_EQ(answer.at("metadata"), json({{"ticket", "7"}}));
  const engine::TextRequest asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 2U);
  EXPECT_EQ(asked.messages[0].role, "system");
  EXPECT_EQ(asked.messages[1].content, "Hi");
  EXPECT_EQ(asked.max_tokens, 32);
}

TEST(Responses, NumbersComeBackAsTheyWere) {
  Worker worker;
  const json answer =
      json::parse(worker.post(kResponses, R"({"input":"Hi","temperature":0.7,"top_p":0.1})").body);
  EXPECT_EQ(answer.at("temperature"), 0.7);
  EXPECT_EQ(answer.at("top_p"), 0.1);
  const json plain = json::parse(worker.post(kResponses, R"({"input":"Hi"})").body);
  EXPECT_EQ(plain.at("temperature").dump(), "1.0");
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
  const engine::TextRequest asked = worker.engine.last_request();
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

constexpr const char* kTools =
    R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true}])";

Script calling() {
  return {.pieces = {"<think>Hm</think>Yes. <tool_call>{\"name\": \"f\", \"arg",
                     "uments\": {\"a\": 1}}</tool_call>"},
          .format = {text::ToolFormat::hermes, text::ReasoningFormat::think}};
}

TEST(Responses, ReasoningTextAndCallsAreItemsInTheirOrder) {
  Worker worker({.script = calling()});
  const json answer =
      json::parse(worker.post(kResponses, cat(R"({"input":"Hi",)", kTools, "}")).body);
  json output = answer.at("output");
  ASSERT_EQ(output.size(), 3u);
  for (json& item : output) EXPECT_FALSE(item.at("id").get<std::string>().empty());
  EXPECT_EQ(output[0].at("type"), "reasoning");
  EXPECT_EQ(output[0].at("content")[0], json({{"type", "reasoning_text"}, {"text", "Hm"}}));
  EXPECT_EQ(output[1].at("content")[0].at("text"), "Yes.");
  output[2].erase("id");
  EXPECT_EQ(output[2], json::parse(R"({"type":"function_call","status":"completed",
      "call_id":"call_0","name":"f","arguments":"{\"a\": 1}"})"));
  EXPECT_EQ(answer.at("tools")[0].at("name"), "f");
  EXPECT_EQ(answer.at("tools")[0].at("strict"), true);
  EXPECT_EQ(answer.at("tool_choice"), "auto");
}

// Codex sends such items.
TEST(Responses, CustomCallsAndTheirResultsAreHeard) {
  Worker worker;
  const json body = json::parse(R"({"input":[
      {"role":"user","content":"List"},
      {"type":"custom_tool_call","id":"ctc_1","status":"completed","call_id":"c1","name":"shell",
       "input":"ls \"a\""},
      {"type":"custom_tool_call_output","call_id":"c1","output":"a b"}]})");
  EXPECT_EQ(worker.post(kResponses, body.dump()).status, 200);
  const engine::TextRequest asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 3U);
  ASSERT_EQ(asked.messages[1].tool_calls.size(), 1U);
  EXPECT_EQ(asked.messages[1].tool_calls[0].name, "shell");
  EXPECT_EQ(json::parse(asked.messages[1].tool_calls[0].arguments), json({{"input", "ls \"a\""}}));
  EXPECT_EQ(asked.messages[2].role, "tool");
  EXPECT_EQ(asked.messages[2].tool_call_id, "c1");
  EXPECT_EQ(asked.messages[2].content, "a b");
}

TEST(Responses, ACustomToolIsAFunctionOfOneText) {
  const Script script{.pieces = {"<tool_call>{\"name\": \"sh\", \"arguments\": {\"inp",
                                 "ut\": \"a\\nb\"}}</tool_call>"},
                      .format = {text::ToolFormat::hermes, text::ReasoningFormat::none}};
  Worker worker({.script = script});
  json body = json::parse(R"({"input":"Hi","tool_choice":{"type":"custom","name":"sh"},
      "tools":[{"type":"custom","name":"sh","description":"Runs"}]})");
  const json answer = json::parse(worker.post(kResponses, body.dump()).body);
  json item = answer.at("output").at(0);
  EXPECT_THAT(item.at("id").get<std::string>(), StartsWith("ctc_"));
  item.erase("id");
  EXPECT_EQ(item, json::parse(R"({"type":"custom_tool_call","status":"completed",
      "call_id":"call_0","name":"sh","input":"a\nb"})"));
  EXPECT_EQ(answer.at("tools"), json::parse(R"([{"type":"custom","name":"sh",
      "format":{"type":"text"},"description":"Runs"}])"));
  EXPECT_EQ(answer.at("tool_choice"), json({{"type", "custom"}, {"name", "sh"}}));
  const engine::ChatOptions chat = worker.engine.last_request().chat;
  ASSERT_EQ(chat.tools.size(), 1U);
  EXPECT_EQ(chat.tool, "sh");
  EXPECT_EQ(json::parse(chat.tools[0].parameters).at("required"), json({"input"}));

  body["stream"] = true;
  std::vector<std::string> told;
  for (const std::string& payload : payloads(worker.post(kResponses, body.dump()).body)) {
    const json event = json::parse(payload);
    const std::string type = event.at("type");
    if (!type.starts_with("response.custom_tool_call_input.")) continue;
    told.push_back(type + " " + event.value("delta", event.value("input", "")));
  }
  EXPECT_THAT(told, ElementsAre("response.custom_tool_call_input.delta a\nb",
                                "response.custom_tool_call_input.done a\nb"));
}

TEST(Responses, ACustomToolMayHaveAGrammar) {
  Worker worker;
  json body = json::parse(R"({"input":"Hi","tools":[
      {"type":"custom","name":"patch","format":{"type":"grammar","syntax":"lark",
       "definition":"start: /a/"}},
      {"type":"custom","name":"day","format":{"type":"grammar","syntax":"regex",
       "definition":"[a-z]+"}}]})");
  const json answer = json::parse(worker.post(kResponses, body.dump()).body);
  EXPECT_EQ(answer.at("tools")[0].at("format"), body.at("tools")[0].at("format"));
  const engine::ChatOptions chat = worker.engine.last_request().chat;
  ASSERT_EQ(chat.tools.size(), 2U);
  EXPECT_EQ(chat.tools[0].input.kind, engine::Constraint::Kind::lark);
  EXPECT_EQ(chat.tools[0].input.text, "start: /a/");
  EXPECT_EQ(chat.tools[1].input.kind, engine::Constraint::Kind::regex);
  EXPECT_EQ(chat.tools[1].input.text, "[a-z]+");
  EXPECT_THAT(chat.tools[0].json, HasSubstr("start: /a/"));
  for (const char* format : {R"({"type":"grammar","syntax":"ebnf","definition":"a"})",
                             R"({"type":"grammar","syntax":"lark"})", R"({"type":"xml"})"}) {
    body["tools"][1]["format"] = json::parse(format);
    const RawResponse refused = worker.post(kResponses, body.dump());
    EXPECT_EQ(refused.status, 400) << format;
    EXPECT_THAT(refused.body, HasSubstr("tools[1].format"));
  }
}

TEST(Responses, UsageCountsReasoning) {
  const Script script{.pieces = {"<think>", "x", "y", "</think>", "Yes."},
                      .format = {text::ToolFormat::none, text::ReasoningFormat::think}};
  Worker worker({.script = script});
  const RawResponse response =
      worker.post(kResponses, R"({"input":"Hi","thinking_token_budget":9})");
  EXPECT_EQ(worker.engine.last_request().chat.reasoning_budget, 9);
  const json usage = json::parse(response.body).at("usage");
  EXPECT_EQ(usage.at("output_tokens"), 5);
  EXPECT_EQ(usage.at("output_tokens_details"), json({{"reasoning_tokens", 2}}));
}

TEST(Responses, ItemsOfAStream) {
  Worker worker({.script = calling()});
  std::vector<std::string> types;
  std::string arguments;
  json done;
  for (const std::string& payload : payloads(
           worker.post(kResponses, cat(R"({"input":"Hi","stream":true,)", kTools, "}")).body)) {
    const json event = json::parse(payload);
    const std::string type = event.at("type");
    EXPECT_EQ(event.at("sequence_number"), types.size());
    types.push_back(type);
    if (type == "response.function_call_arguments.delta") arguments += event.at("delta");
    if (type == "response.function_call_arguments.done") done = event;
  }
  EXPECT_THAT(
      types,
      ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                  "response.content_part.added", "response.reasoning_text.delta",
                  "response.reasoning_text.done", "response.content_part.done",
                  "response.output_item.done", "response.output_item.added",
                  "response.content_part.added", "response.output_text.delta",
                  "response.output_text.done", "response.content_part.done",
                  "response.output_item.done", "response.output_item.added",
                  "response.function_call_arguments.delta", "response.function_call_arguments.done",
                  "response.output_item.done", "response.completed"));
  EXPECT_EQ(arguments, R"({"a": 1})");
  EXPECT_EQ(done.at("arguments"), arguments);
  EXPECT_EQ(done.at("output_index"), 2);
}

// Codex sends such tools.
TEST(Responses, ToolsThatAreNoFunctionsAreLeftOut) {
  Worker worker;
  const json body = json::parse(R"({"input":"Hi","truncation":"auto",
      "include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"shell"},
      {"type":"web_search","external_web_access":true},{"type":"local_shell"},
      {"type":"namespace","name":"mcp","tools":[]}]})");
  const RawResponse response = worker.post(kResponses, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const json answer = json::parse(response.body);
  ASSERT_EQ(answer.at("tools").size(), 1U);
  EXPECT_EQ(answer.at("tools")[0].at("name"), "shell");
  EXPECT_EQ(answer.at("truncation"), "disabled");
  ASSERT_EQ(worker.engine.last_request().chat.tools.size(), 1U);
}

TEST(Responses, ToolsThatMayBeCalledAreTheOthersBoundary) {
  Worker worker;
  json body = json::parse(R"({"input":"Hi","tools":[{"type":"function","name":"f"},
      {"type":"function","name":"g"},{"type":"web_search"}],"tool_choice":{"type":"allowed_tools",
      "mode":"required","tools":[{"type":"function","name":"g"},{"type":"web_search"}]}})");
  const RawResponse response = worker.post(kResponses, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const engine::ChatOptions asked = worker.engine.last_request().chat;
  ASSERT_EQ(asked.tools.size(), 1U);
  EXPECT_EQ(asked.tools[0].name, "g");
  EXPECT_EQ(asked.tool_choice, engine::ToolChoice::required);
  body["tool_choice"]["tools"][0]["name"] = "h";
  const json error = json::parse(worker.post(kResponses, body.dump()).body).at("error");
  EXPECT_EQ(error.at("param"), "tool_choice");
}

TEST(Responses, ARefusalIsWhatTheAssistantSaid) {
  Worker worker;
  const json body = json::parse(R"({"input":[{"role":"user","content":"One"},
      {"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},
      {"role":"user","content":"Two"}]})");
  ASSERT_EQ(worker.post(kResponses, body.dump()).status, 200);
  EXPECT_EQ(worker.engine.last_request().messages.at(1).content, "No.");
}

Script scored_words() {
  const engine::ScoredChoice think{{1, "<think>x</think>", -1}, {}};
  const engine::ScoredChoice yes{{2, "Yes", -0.5F}, {{2, "Yes", -0.5F}, {3, "No", -2}}};
  const engine::ScoredChoice dot{{4, ".", -0.25F}, {}};
  return {.pieces = {"<think>x</think>", "Yes", "."},
          .format = {text::ToolFormat::none, text::ReasoningFormat::think},
          .tokens = {{think}, {yes}, {dot}}};
}

constexpr const char* kScored = R"("include":["message.output_text.logprobs"],"top_logprobs":2)";

// OpenAI's document: {token, bytes, logprob, top_logprobs} for each token of a text.
TEST(Responses, LogProbabilitiesOfTheText) {
  Worker worker({.script = scored_words()});
  const json answer =
      json::parse(worker.post(kResponses, cat(R"({"input":"Hi",)", kScored, "}")).body);
  EXPECT_EQ(worker.engine.last_request().logprobs, 2);
  EXPECT_EQ(answer.at("top_logprobs"), 2);
  const json& part = answer.at("output").at(1).at("content").at(0);
  EXPECT_EQ(part.at("text"), "Yes.");
  EXPECT_EQ(part.at("logprobs"), json::parse(R"([
      {"token":"Yes","bytes":[89,101,115],"logprob":-0.5,"top_logprobs":[
        {"token":"Yes","bytes":[89,101,115],"logprob":-0.5},
        {"token":"No","bytes":[78,111],"logprob":-2.0}]},
      {"token":".","bytes":[46],"logprob":-0.25,"top_logprobs":[]}])"));
}

TEST(Responses, LogProbabilitiesInAStream) {
  Worker worker({.script = scored_words()});
  const RawResponse response =
      worker.post(kResponses, cat(R"({"input":"Hi","stream":true,)", kScored, "}"));
  std::vector<std::string> tokens, whole;
  for (const std::string& payload : payloads(response.body)) {
    const json event = json::parse(payload);
    const bool more = event.at("type") == "response.output_text.delta";
    if (!more && event.at("type") != "response.output_text.done") continue;
    for (const json& token : event.at("logprobs")) {
      (more ? tokens : whole).push_back(token.at("token"));
    }
  }
  EXPECT_THAT(tokens, ElementsAre("Yes", "."));
  EXPECT_EQ(whole, tokens);
}

TEST(Responses, EarlierItemsAreTheAssistantsTurn) {
  Worker worker;
  const RawResponse response = worker.post(kResponses, R"({"input":[
      {"role":"user","content":"Hi"},
      {"type":"reasoning","id":"rs_1","summary":[],
       "content":[{"type":"reasoning_text","text":"Hm"}]},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]},
      {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"c1","output":"7"}],
      "reasoning":{"effort":"low"},"tool_choice":"none"})");
  ASSERT_EQ(response.status, 200) << response.body;
  const engine::TextRequest asked = worker.engine.last_request();
  ASSERT_EQ(asked.messages.size(), 3U);
  EXPECT_EQ(asked.messages[1].reasoning, "Hm");
  EXPECT_EQ(asked.messages[1].content, "Yes.");
  ASSERT_EQ(asked.messages[1].tool_calls.size(), 1U);
  EXPECT_EQ(asked.messages[2].role, "tool");
  EXPECT_EQ(asked.messages[2].content, "7");
  EXPECT_EQ(asked.chat.template_variables, R"({"reasoning_effort":"low"})");
  EXPECT_EQ(asked.chat.reasoning_budget, std::nullopt);
}

TEST(Responses, TheFormOfTheTextReachesTheEngine) {
  Worker worker;
  const RawResponse response =
      worker.post(kResponses, R"({"input":"x","text":{"format":{"type":"json_schema","name":"n",
                      "schema":{"properties":{"z":true,"a":true}}}}})");
  ASSERT_EQ(response.status, 200) << response.body;
  const engine::Constraint asked = worker.engine.last_request().constraint;
  EXPECT_EQ(asked.kind, engine::Constraint::Kind::json_schema);
  EXPECT_EQ(asked.text, R"({"properties":{"z":true,"a":true}})");
  EXPECT_EQ(json::parse(response.body).at("text").at("format").at("name"), "n");
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
  EXPECT_EQ(param(R"({"input":[{"type":"computer_call"}]})"), "input[0].type");
  EXPECT_EQ(param(R"({"input":[{"type":"function_call"}]})"), "input[0].call_id");
  EXPECT_EQ(param(R"({"input":"x","reasoning":{"effort":"much"}})"), "reasoning.effort");
  EXPECT_EQ(param(R"({"input":"x","text":{"format":{"type":"xml"}}})"), "text.format.type");
  EXPECT_EQ(param(R"({"input":"x","previous_response_id":"resp_1"})"), "previous_response_id");
  EXPECT_EQ(param(R"({"input":"x","tools":[{"name":"f"}]})"), "tools[0].type");
  EXPECT_EQ(param(R"({"input":"x","tools":[{"type":"web_search"}],"tool_choice":"required"})"),
            "tool_choice");
  EXPECT_EQ(param(R"({"input":"x","tool_choice":{"type":"web_search"}})"), "tool_choice");
  EXPECT_EQ(param(R"({"input":"x","truncation":"middle"})"), "truncation");
  EXPECT_EQ(param(R"({"input":"x","include":"logprobs"})"), "include");
  EXPECT_EQ(param(R"({"input":"x","include":["file_search_call.results"]})"), "include");
  EXPECT_EQ(param(R"({"input":"x","top_logprobs":1})"), "top_logprobs");
  EXPECT_EQ(param(R"({"input":"x","top_logprobs":21})"), "top_logprobs");
  EXPECT_EQ(param(R"({"input":"x","max_output_tokens":0})"), "max_output_tokens");
}

}  // namespace
}  // namespace rbee::testing
