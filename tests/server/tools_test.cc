// Tool calls and reasoning in OpenAI's chats, over a scripted engine that parses its output as a
// model's format requires.

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kTool =
    R"({"type":"function","function":{"name":"get_weather","description":"Weather of a city",
        "strict":true,"parameters":{"type":"object","properties":{"z":{"type":"string"},
        "a":{"type":"integer"}}}}})";

std::string chat(std::string_view more) {
  return cat(R"({"messages":[{"role":"user","content":"Hi"}],"tools":[)", kTool, "]", more, "}");
}

// Reasoning, text and two calls, cut at odd places.
Script calling() {
  return {.pieces = {"<think>\nWhat ci", "ty?\n</thi", "nk>\n\nI look.", "\n<tool_",
                     "call>\n{\"name\": ", "\"get_weather\", \"arguments\": {\"z\": \"Pa",
                     "ris\"}}\n</tool_call>\n<tool_call>",
                     "{\"name\": \"get_weather\", \"arguments\": {}}</tool_call>"},
          .format = {text::ToolFormat::hermes, text::ReasoningFormat::think}};
}

TEST(Tools, AnAnswerWithCallsInOnePiece) {
  Worker worker({.script = calling()});
  const json answer = json::parse(worker.post(kChat, chat("")).body);
  const json wanted = json::parse(R"({"role":"assistant","content":"I look.","refusal":null,
      "reasoning":"What city?","reasoning_content":"What city?","tool_calls":[
      {"id":"call_0","type":"function",
       "function":{"name":"get_weather","arguments":"{\"z\": \"Paris\"}"}},
      {"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]})");
  EXPECT_EQ(answer.at("choices")[0].at("message"), wanted);
  EXPECT_EQ(answer.at("choices")[0].at("finish_reason"), "tool_calls");
}

TEST(Tools, CallsAloneLeaveNoContent) {
  Worker worker({.script = {.pieces = {R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)"},
                            .format = {text::ToolFormat::hermes, text::ReasoningFormat::none}}});
  const json choice = json::parse(worker.post(kChat, chat("")).body).at("choices")[0];
  EXPECT_EQ(choice.at("message").at("content"), nullptr);
  EXPECT_FALSE(choice.at("message").contains("reasoning"));
}

TEST(Tools, AnAnswerThatIsCutOffSaysLength) {
  Script script = calling();
  script.reason = engine::StopReason::max_tokens;
  Worker worker({.script = script});
  const json choice = json::parse(worker.post(kChat, chat("")).body).at("choices")[0];
  EXPECT_EQ(choice.at("finish_reason"), "length");
}

TEST(Tools, AStreamGivesIdAndNameOnceAndArgumentsInPieces) {
  Worker worker({.script = calling()});
  std::string reasoning, content, arguments[2];
  std::vector<std::string> begins;
  json reason;
  for (const std::string& payload : payloads(worker.post(kChat, chat(R"(,"stream":true)")).body)) {
    if (payload == "[DONE]") continue;
    const json choice = json::parse(payload).at("choices").at(0);
    const json delta = choice.at("delta");
    reasoning += delta.value("reasoning", "");
    EXPECT_EQ(delta.value("reasoning", ""), delta.value("reasoning_content", ""));
    content += delta.value("content", "");
    for (const json& call : delta.value("tool_calls", json::array())) {
      if (call.contains("id")) {
        EXPECT_EQ(call.at("type"), "function");
        begins.push_back(cat(call.at("id").get<std::string>(), " ",
                             call.at("function").at("name").get<std::string>()));
      }
      arguments[call.at("index").get<size_t>()] += call.at("function").at("arguments");
    }
    if (!choice.at("finish_reason").is_null()) reason = choice.at("finish_reason");
  }
  EXPECT_EQ(reasoning, "What city?");
  EXPECT_EQ(content, "I look.");
  EXPECT_THAT(begins, ElementsAre("call_0 get_weather", "call_1 get_weather"));
  EXPECT_EQ(arguments[0], R"({"z": "Paris"})");
  EXPECT_EQ(arguments[1], "{}");
  EXPECT_EQ(reason, "tool_calls");
}

TEST(Tools, WithoutToolsTheirMarksAreText) {
  Worker worker({.script = calling()});
  const json message =
      json::parse(worker.post(kChat, R"({"messages":[{"role":"user","content":"Hi"}]})").body)
          .at("choices")[0]
          .at("message");
  EXPECT_THAT(message.at("content").get<std::string>(), HasSubstr("<tool_call>"));
  EXPECT_EQ(message.at("reasoning"), "What city?");
}

// OpenAI's form without a type, its Responses', Anthropic's, and one without a schema.
TEST(Tools, OtherSpellingsAreTaken) {
  Worker worker;
  const std::string schema = R"({"type":"object","properties":{"z":{"type":"string"}}})";
  for (const char* name : {"parameters", "input_schema"}) {
    const std::string function = cat(R"("name":"f","description":"d",")", name, "\":", schema);
    for (const std::string& tool :
         {cat(R"({"function":{)", function, "}}"), cat("{", function, "}"),
          cat(R"({"type":"function",)", function, "}")}) {
      const RawResponse response =
          worker.post(kChat, cat(R"({"messages":[{"role":"user","content":"Hi"}],"tools":[)", tool,
                                 R"(],"tool_choice":{"type":"tool","name":"f"}})"));
      ASSERT_EQ(response.status, 200) << tool << response.body;
      const engine::ChatOptions chat = worker.engine.last_request().chat;
      ASSERT_EQ(chat.tools.size(), 1u) << tool;
      EXPECT_EQ(chat.tools[0].name, "f");
      EXPECT_EQ(chat.tools[0].parameters, schema);
      EXPECT_EQ(chat.tools[0].json, cat(R"({"type":"function","function":{"name":"f",)",
                                        R"("description":"d","parameters":)", schema, "}}"));
      EXPECT_EQ(chat.tool, "f");
    }
  }
}

TEST(Tools, WhatIsAskedReachesTheEngine) {
  Worker worker;
  const auto asked = [&](std::string_view more) {
    const RawResponse response = worker.post(kChat, chat(more));
    EXPECT_EQ(response.status, 200) << response.body;
    return worker.engine.last_request().chat;
  };
  const engine::ChatOptions plain = asked("");
  EXPECT_TRUE(plain.split);
  ASSERT_EQ(plain.tools.size(), 1u);
  EXPECT_EQ(plain.tools[0].name, "get_weather");
  EXPECT_TRUE(plain.tools[0].strict);
  EXPECT_EQ(plain.tools[0].parameters,
            R"({"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}}})");
  EXPECT_THAT(plain.tools[0].json, HasSubstr(R"({"type":"function","function":{"name":)"));
  EXPECT_EQ(plain.tool_choice, engine::ToolChoice::automatic);
  EXPECT_TRUE(plain.parallel_tool_calls);
  EXPECT_EQ(asked(R"(,"tool_choice":"none")").tool_choice, engine::ToolChoice::none);
  EXPECT_EQ(asked(R"(,"tool_choice":"required")").tool_choice, engine::ToolChoice::required);
  const engine::ChatOptions any = asked(R"(,"tool_choice":"any")");
  EXPECT_EQ(any.tool_choice, engine::ToolChoice::required);
  EXPECT_FALSE(any.one_call());
  EXPECT_TRUE(
      asked(R"(,"tool_choice":{"type":"function","function":{"name":"get_weather"}})").one_call());
  const engine::ChatOptions named =
      asked(R"(,"tool_choice":{"type":"function","function":{"name":"get_weather"}},
               "parallel_tool_calls":false,"reasoning_effort":"high",
               "chat_template_kwargs":{"y":1,"b":[2]})");
  EXPECT_EQ(named.tool, "get_weather");
  EXPECT_EQ(named.tool_choice, engine::ToolChoice::required);
  EXPECT_FALSE(named.parallel_tool_calls);
  EXPECT_EQ(named.template_variables, R"({"y":1,"b":[2],"reasoning_effort":"high"})");
}

TEST(Tools, HowToReasonReachesTheEngineUnderEveryName) {
  Worker worker;
  const auto asked = [&](std::string_view more) {
    const RawResponse response = worker.post(kChat, chat(more));
    EXPECT_EQ(response.status, 200) << response.body;
    return worker.engine.last_request().chat;
  };
  const auto variables = [](const engine::ChatOptions& options) {
    return options.template_variables.empty() ? json() : json::parse(options.template_variables);
  };
  const json off = {{"enable_thinking", false}, {"thinking", false}, {"thinking_budget", 0}};
  EXPECT_EQ(asked("").reasoning_budget, std::nullopt);
  EXPECT_EQ(asked("").template_variables, "");
  for (const char* name : {"thinking_token_budget", "reasoning_budget", "reasoning_budget_tokens",
                           "thinking_budget_tokens"}) {
    const auto budget = [&](int value) { return asked(cat(",\"", name, "\":", value)); };
    EXPECT_EQ(budget(70).reasoning_budget, 70);
    EXPECT_EQ(variables(budget(70)), json({{"thinking_budget", 70}}));
    EXPECT_EQ(budget(0).reasoning_budget, 0);
    EXPECT_EQ(variables(budget(0)), off);
    EXPECT_EQ(budget(-1).reasoning_budget, std::nullopt);
    EXPECT_EQ(variables(budget(-1)), json());
  }
  EXPECT_EQ(asked(R"(,"thinking_token_budget":9,"reasoning_budget":8)").reasoning_budget, 8);
  const engine::ChatOptions none = asked(R"(,"reasoning_effort":"none")");
  EXPECT_EQ(none.reasoning_budget, 0);
  json wanted = off;
  wanted["reasoning_effort"] = "none";
  EXPECT_EQ(variables(none), wanted);
  const engine::ChatOptions minimal = asked(R"(,"reasoning_effort":"minimal")");
  EXPECT_EQ(minimal.reasoning_budget, std::nullopt);
  EXPECT_EQ(variables(minimal), json({{"reasoning_effort", "minimal"}}));
  // The client's own variables stay.
  const engine::ChatOptions own =
      asked(R"(,"thinking_token_budget":0,"chat_template_kwargs":{"enable_thinking":true})");
  EXPECT_EQ(own.reasoning_budget, 0);
  EXPECT_EQ(variables(own).at("enable_thinking"), true);
}

TEST(Tools, ChatsWithoutABudgetTakeTheWorkers) {
  Worker worker({.defaults = {.reasoning_budget = 40}});
  const auto asked = [&](std::string_view more) {
    const RawResponse response = worker.post(kChat, chat(more));
    EXPECT_EQ(response.status, 200) << response.body;
    return worker.engine.last_request().chat;
  };
  EXPECT_EQ(asked("").reasoning_budget, 40);
  EXPECT_EQ(json::parse(asked("").template_variables), json({{"thinking_budget", 40}}));
  EXPECT_EQ(asked(R"(,"reasoning_effort":"high")").reasoning_budget, 40);
  EXPECT_EQ(asked(R"(,"reasoning_budget":70)").reasoning_budget, 70);
  EXPECT_EQ(asked(R"(,"reasoning_budget":0)").reasoning_budget, 0);
  EXPECT_EQ(asked(R"(,"reasoning_effort":"none")").reasoning_budget, 0);
  EXPECT_EQ(asked(R"(,"reasoning_budget":-1)").reasoning_budget, std::nullopt);
  EXPECT_EQ(asked(R"(,"reasoning_budget":-1)").template_variables, "");
  EXPECT_EQ(asked(R"(,"reasoning_budget":-1,"reasoning_effort":"none")").reasoning_budget, 0);
  EXPECT_EQ(asked(R"(,"thinking_token_budget":-1,"reasoning_budget":9)").reasoning_budget, 9);
  // Completions have no field for reasoning.
  worker.post("/v1/completions", R"({"prompt":"Hi","max_tokens":1})");
  EXPECT_EQ(worker.engine.last_request().chat.reasoning_budget, std::nullopt);

  Worker silent({.defaults = {.reasoning_budget = 0}});
  silent.post(kChat, chat(""));
  EXPECT_EQ(silent.engine.last_request().chat.reasoning_budget, 0);
  EXPECT_EQ(json::parse(silent.engine.last_request().chat.template_variables),
            json({{"enable_thinking", false}, {"thinking", false}, {"thinking_budget", 0}}));
}

TEST(Tools, UsageCountsReasoning) {
  // The pieces "x" and "y" are reasoning.
  const Script script{.pieces = {"<think>", "x", "y", "</think>", "Yes."},
                      .format = {text::ToolFormat::none, text::ReasoningFormat::think}};
  Worker worker({.script = script});
  const std::string body = R"({"messages":[{"role":"user","content":"Hi"}],"n":2,"stream":)";
  const json whole = json::parse(worker.post(kChat, body + "false}").body).at("usage");
  EXPECT_EQ(whole, json::parse(R"({"prompt_tokens":5,"completion_tokens":10,"total_tokens":15,
                                   "prompt_tokens_details":{"cached_tokens":2},
                                   "completion_tokens_details":{"reasoning_tokens":4}})"));
  const auto stream =
      payloads(worker.post(kChat, body + R"(true,"stream_options":{"include_usage":true}})").body);
  EXPECT_EQ(json::parse(stream.at(stream.size() - 2)).at("usage"), whole);
}

TEST(Tools, EarlierCallsAndResultsReachTheEngine) {
  Worker worker;
  const RawResponse response = worker.post(kChat, R"({"messages":[{"role":"user","content":"Hi"},
      {"role":"assistant","content":null,"reasoning_content":"Hm","tool_calls":[{"id":"c1",
       "type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"7"}]})");
  EXPECT_EQ(response.status, 200) << response.body;
  const auto messages = worker.engine.last_request().messages;
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1].reasoning, "Hm");
  ASSERT_EQ(messages[1].tool_calls.size(), 1u);
  EXPECT_EQ(messages[1].tool_calls[0].arguments, R"({"a":1})");
  EXPECT_EQ(messages[2].tool_call_id, "c1");
  EXPECT_EQ(messages[2].content, "7");
}

std::string older_chat(const std::string& more) {
  return cat(R"({"messages":[{"role":"user","content":"Hi"}],"functions":[{"name":"get_weather",)",
             R"("parameters":{"type":"object","properties":{"z":{"type":"string"}}}}])", more, "}");
}

TEST(Tools, TheOlderFormOfFunctionsIsAnsweredInItsOwn) {
  const Script script{
      .pieces = {R"(<tool_call>{"name": "get_weather", )", R"("arguments": {"z": 1}}</tool_call>)"},
      .format = {text::ToolFormat::hermes, text::ReasoningFormat::none}};
  Worker worker({.script = script});
  const json whole = json::parse(worker.post(kChat, older_chat("")).body).at("choices")[0];
  EXPECT_EQ(whole.at("message"), json::parse(R"({"role":"assistant","content":null,"refusal":null,
      "function_call":{"name":"get_weather","arguments":"{\"z\": 1}"}})"));
  EXPECT_EQ(whole.at("finish_reason"), "function_call");
  EXPECT_FALSE(worker.engine.last_request().chat.parallel_tool_calls);

  std::string name, arguments, reason;
  for (const std::string& payload :
       payloads(worker.post(kChat, older_chat(R"(,"stream":true)")).body)) {
    if (payload == "[DONE]") continue;
    const json choice = json::parse(payload).at("choices").at(0);
    EXPECT_FALSE(choice.at("delta").contains("tool_calls"));
    const json call = choice.at("delta").value("function_call", json::object());
    name += call.value("name", "");
    arguments += call.value("arguments", "");
    if (!choice.at("finish_reason").is_null()) reason = choice.at("finish_reason");
  }
  EXPECT_EQ(name, "get_weather");
  EXPECT_EQ(arguments, R"({"z": 1})");
  EXPECT_EQ(reason, "function_call");
}

TEST(Tools, TheOlderFormReachesTheEngine) {
  Worker worker;
  const auto asked = [&](const char* more) {
    const RawResponse response = worker.post(kChat, older_chat(more));
    EXPECT_EQ(response.status, 200) << more << response.body;
    return worker.engine.last_request().chat;
  };
  EXPECT_EQ(asked(R"(,"function_call":"auto")").tool_choice, engine::ToolChoice::automatic);
  EXPECT_EQ(asked(R"(,"function_call":"none")").tool_choice, engine::ToolChoice::none);
  const engine::ChatOptions named = asked(R"(,"function_call":{"name":"get_weather"})");
  EXPECT_EQ(named.tool_choice, engine::ToolChoice::required);
  EXPECT_EQ(named.tool, "get_weather");
  ASSERT_EQ(named.tools.size(), 1U);
  EXPECT_THAT(named.tools[0].json, HasSubstr(R"({"type":"function","function":{"name":)"));

  for (const auto& [more, field] : std::vector<std::pair<const char*, const char*>>{
           {R"(,"tools":[{"type":"function","function":{"name":"f"}}])", "functions"},
           {R"(,"tool_choice":"auto")", "functions"},
           {R"(,"function_call":{"name":"other"})", "function_call"},
           {R"(,"function_call":"maybe")", "function_call"}}) {
    const RawResponse response = worker.post(kChat, older_chat(more));
    EXPECT_EQ(response.status, 400) << more;
    EXPECT_EQ(json::parse(response.body).at("error").at("param"), field) << more;
  }
}

TEST(Tools, MessagesOfTheOlderFormReachTheEngine) {
  Worker worker;
  const RawResponse response = worker.post(kChat, R"({"messages":[{"role":"user","content":"Hi"},
      {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"}},
      {"role":"function","name":"f","content":"7"}]})");
  ASSERT_EQ(response.status, 200) << response.body;
  const auto messages = worker.engine.last_request().messages;
  ASSERT_EQ(messages.size(), 3U);
  ASSERT_EQ(messages[1].tool_calls.size(), 1U);
  EXPECT_EQ(messages[1].tool_calls[0].arguments, R"({"a":1})");
  EXPECT_EQ(messages[2].role, "tool");
  EXPECT_EQ(messages[2].content, "7");
}

TEST(Tools, NumbersKeepAllTheirDigits) {
  Worker worker;
  const std::string schema =
      R"({"type":"object","properties":{"n":{"minimum":-9223372036854775809,)"
      R"("maximum":18446744073709551616,"enum":[0.12345678901234567890123,1e-400]}}})";
  const std::string body =
      cat(R"({"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":)",
          R"({"name":"f","parameters":)", schema, "}}],",
          R"("chat_template_kwargs":{"x":99999999999999999999}})");
  ASSERT_EQ(worker.post(kChat, body).status, 200);
  const engine::ChatOptions asked = worker.engine.last_request().chat;
  ASSERT_EQ(asked.tools.size(), 1U);
  EXPECT_EQ(asked.tools[0].parameters, schema);
  EXPECT_THAT(asked.tools[0].json, HasSubstr(schema));
  EXPECT_EQ(asked.template_variables, R"({"x":99999999999999999999})");
}

TEST(Tools, OnesThatAreNotAllowedAreLeftOut) {
  Worker worker;
  const std::string more = R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{
      "mode":"auto","tools":[{"type":"function","function":{"name":"g"}}]}})";
  const std::string tools = cat(R"("tools":[)", kTool, R"(,{"type":"custom","custom":{"name":"c"}},
      {"type":"function","function":{"name":"g"}}])");
  const std::string body = cat(R"({"messages":[{"role":"user","content":"Hi"}],)", tools);
  ASSERT_EQ(worker.post(kChat, body + "}").status, 200);
  EXPECT_EQ(worker.engine.last_request().chat.tools.size(), 3U);
  ASSERT_EQ(worker.post(kChat, cat(body, more, "}")).status, 200);
  const engine::ChatOptions asked = worker.engine.last_request().chat;
  ASSERT_EQ(asked.tools.size(), 1U);
  EXPECT_EQ(asked.tools[0].name, "g");
  EXPECT_EQ(asked.tool_choice, engine::ToolChoice::automatic);
}

TEST(Tools, AnAssistantMaySayNothingOrRefuse) {
  Worker worker;
  ASSERT_EQ(worker
                .post(kChat, R"({"messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":null},{"role":"user","content":"b"},
      {"role":"assistant","content":null,"refusal":"No."},{"role":"user","content":"c"},
      {"role":"assistant","content":[{"type":"refusal","refusal":"Never."}]},
      {"role":"user","content":"d"}]})")
                .status,
            200);
  const auto messages = worker.engine.last_request().messages;
  EXPECT_EQ(messages.at(1).content, "");
  EXPECT_EQ(messages.at(3).content, "No.");
  EXPECT_EQ(messages.at(5).content, "Never.");
}

TEST(Tools, WhatIsWrongIsNamed) {
  Worker worker;
  const auto with = [](std::string_view fields) {
    return cat(R"({"messages":[{"role":"user","content":"Hi"}],)", fields, "}");
  };
  for (
      const auto& [body, param] : std::vector<std::pair<std::string, std::string>>{
          {with(R"("tools":7)"), "tools"},
          {with(R"("tools":[7])"), "tools[0]"},
          {with(R"("tools":[{"type":"web_search"}])"), "tools[0].type"},
          {with(R"("tools":[{"type":"function"}])"), "tools[0].function"},
          {with(R"("tools":[{}])"), "tools[0].function"},
          {with(R"("tools":[{"name":"bash","type":"bash_20250124"}])"), "tools[0].type"},
          {with(R"("tools":[{"name":"f","input_schema":7}])"), "tools[0].input_schema"},
          {with(R"("tools":[{"name":"f","parameters":{},"input_schema":[]}])"),
           "tools[0].input_schema"},
          {with(R"("tools":[{"type":"function","function":{"name":"a b"}}])"),
           "tools[0].function.name"},
          {with(R"("tools":[{"type":"function","function":{"name":"a","parameters":7}}])"),
           "tools[0].function.parameters"},
          {with(R"("tools":[{"type":"function","function":{"name":"a","strict":7}}])"),
           "tools[0].function.strict"},
          {with(R"("tool_choice":"required")"), "tool_choice"},
          {chat(R"(,"tool_choice":"sometimes")"), "tool_choice"},
          {chat(R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[]}})"),
           "tool_choice"},
          {chat(R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required",
               "tools":[]}})"),
           "tool_choice"},
          {R"({"messages":[{"role":"assistant"}]})", "messages[0].content"},
          {R"({"messages":[{"role":"user","content":null}]})", "messages[0].content"},
          {R"({"messages":[{"role":"user","content":[{"type":"refusal","refusal":"x"}]}]})",
           "messages[0].content"},
          {chat(R"(,"tool_choice":{"type":"function","function":{"name":"x"}})"), "tool_choice"},
          {chat(R"(,"parallel_tool_calls":1)"), "parallel_tool_calls"},
          {chat(R"(,"reasoning_effort":"much")"), "reasoning_effort"},
          {chat(R"(,"thinking_token_budget":-2)"), "thinking_token_budget"},
          {chat(R"(,"reasoning_budget":"much")"), "reasoning_budget"},
          {chat(R"(,"reasoning_budget_tokens":1.5)"), "reasoning_budget_tokens"},
          {chat(R"(,"thinking_budget_tokens":2147483648)"), "thinking_budget_tokens"},
          {chat(R"(,"chat_template_kwargs":[])"), "chat_template_kwargs"},
          {R"({"messages":[{"role":"tool","content":"x"}]})", "messages[0].tool_call_id"},
          {R"({"messages":[{"role":"assistant","tool_calls":[{}]}]})", "messages[0].tool_calls[0]"},
          {R"({"messages":[{"role":"assistant","tool_calls":[{"type":{},"function":{"name":"f"}}]}]})",
           "messages[0].tool_calls[0].type"},
      }) {
    const RawResponse response = worker.post(kChat, body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(json::parse(response.body).at("error").at("param"), param) << response.body;
  }
  EXPECT_EQ(worker.post("/v1/completions", cat(R"({"prompt":"x","tools":[)", kTool, "]}")).status,
            400);
}

TEST(Tools, TheTemplateIsShownThem) {
  Worker worker;
  const json shown = json::parse(worker.post("/apply-template", chat("")).body);
  EXPECT_EQ(shown.at("prompt"), "get_weather\nuser: Hi\n");
}

TEST(Tools, CustomToolsOfChatsHaveTextsForArguments) {
  const Script script{.pieces = {"<tool_call>{\"name\": \"sh\", \"arguments\": {\"inp",
                                 "ut\": \"a\\nb\"}}</tool_call>"},
                      .format = {text::ToolFormat::hermes, text::ReasoningFormat::none}};
  Worker worker({.script = script});
  json body = json::parse(R"({"messages":[{"role":"user","content":"Hi"},
      {"role":"assistant","tool_calls":[{"id":"c1","type":"custom",
       "custom":{"name":"sh","input":"ls \"a\""}}]},
      {"role":"tool","tool_call_id":"c1","content":"a"}],
      "tool_choice":{"type":"custom","custom":{"name":"sh"}},
      "tools":[{"type":"custom","custom":{"name":"sh","format":{"type":"grammar",
       "grammar":{"syntax":"regex","definition":"(?:a|\\n|b)+"}}}}]})");
  const json answer =
      json::parse(worker.post("/v1/chat/completions", body.dump()).body).at("choices")[0];
  EXPECT_EQ(answer.at("message").at("tool_calls"), json::parse(R"([{"id":"call_0",
      "type":"custom","custom":{"name":"sh","input":"a\nb"}}])"));
  EXPECT_EQ(answer.at("finish_reason"), "tool_calls");
  const engine::TextRequest asked = worker.engine.last_request();
  EXPECT_EQ(json::parse(asked.messages[1].tool_calls[0].arguments), json({{"input", "ls \"a\""}}));
  EXPECT_EQ(asked.chat.tool, "sh");
  ASSERT_EQ(asked.chat.tools.size(), 1U);
  EXPECT_EQ(asked.chat.tools[0].input.kind, engine::Constraint::Kind::regex);

  body["stream"] = true;
  std::vector<json> calls;
  for (const std::string& payload :
       payloads(worker.post("/v1/chat/completions", body.dump()).body)) {
    if (payload == "[DONE]") continue;
    const json delta = json::parse(payload).at("choices")[0].at("delta");
    if (delta.contains("tool_calls")) calls.push_back(delta.at("tool_calls")[0]);
  }
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0], json::parse(R"({"index":0,"id":"call_0","type":"custom",
      "custom":{"name":"sh","input":""}})"));
  EXPECT_EQ(calls[1], json::parse(R"({"index":0,"custom":{"input":"a\nb"}})"));
}

}  // namespace
}  // namespace rbee::testing
