// Tool calls and reasoning of a tiny random model. Its texts mean nothing, so the grammar forces
// the form; the form's parser and a JSON library judge it.

#include <gmock/gmock.h>

#include <array>

#include <nlohmann/json.hpp>

#include "rbee/engine/text/form/answer_grammar.h"
#include "rbee/engine/text/prompt/chat_prompt.h"
#include "rbee/engine/text/prompt/tool_prompt.h"
#include "rbee/text/output/output_parser.h"
#include "tests/units/engine/call_marks.h"
#include "tests/units/engine/tiny_engine.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::engine {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;
using text::ReasoningFormat;
using text::ToolFormat;

// The texts of an answer, by kind.
class Parts final : public EventSink {
 public:
  struct Call {
    std::string id, name, arguments;
  };
  void on_started(const Started& event) noexcept override { recorder_.on_started(event); }
  void on_token(const TokenText& event) noexcept override {
    if (event.kind == TextKind::content) content += event.text;
    if (event.kind == TextKind::reasoning) reasoning += event.text;
    if (event.call_begin) calls.push_back({event.call_begin->id, event.call_begin->name, ""});
    if (event.kind == TextKind::call)
      calls.at(static_cast<size_t>(event.call)).arguments += event.text;
    recorder_.on_token(event);
  }
  void on_finished(const Finished& event) noexcept override { recorder_.on_finished(event); }
  void on_failed(const Failed& event) noexcept override { recorder_.on_failed(event); }
  const Finished& wait() {
    recorder_.wait();
    EXPECT_TRUE(recorder_.finished) << recorder_.failed->message;
    return *recorder_.finished;
  }

  std::string content, reasoning;
  std::vector<Call> calls;

 private:
  Recorder recorder_;
};

TextModel model_with(text::OutputFormat format, std::vector<std::string> marks = {"<|x|>"},
                     const char* code = "{% for m in messages %}{{ m.content }}{% endfor %}") {
  TextModel model = tiny_model(512);
  model.tokenizer = text::tokenizer_from_json(test::tiny_tokenizer_json("</s>", marks),
                                              test::kTinyTokenizerConfig);
  model.end_tokens = model.tokenizer->end_tokens();
  model.format = format;
  model.chat_template = std::make_unique<text::ChatTemplate>(code);
  return model;
}

Tool weather(bool strict = false) {
  const std::string schema =
      R"({"type":"object","properties":{"city":{"type":"string","enum":["Rome","Oslo"]},"days":{"type":"integer","minimum":1,"maximum":9}},"required":["city","days"]})";
  return {"get_weather", R"({"type":"function","function":{"name":"get_weather"}})", schema,
          strict};
}
Tool clock(bool strict = false) {
  return {
      "clock", R"({"type":"function","function":{"name":"clock"}})",
      R"({"type":"object","properties":{"zone":{"type":"string","enum":["UTC","CET"]}},"required":["zone"]})",
      strict};
}

TextRequest chat(ToolChoice choice, uint64_t seed = 1) {
  TextRequest request;
  request.messages = {{"user", "abc"}};
  request.max_tokens = 160;
  request.sampling.temperature = 1.5f;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1;
  request.sampling.seed = seed;
  request.chat = {.split = true, .tools = {weather(), clock()}, .tool_choice = choice};
  return request;
}

std::shared_ptr<Parts> ask(TextEngine& engine, TextRequest request) {
  auto sink = std::make_shared<Parts>();
  request.job_id = "job";
  engine.submit(std::move(request), sink);
  sink->wait();
  return sink;
}

void expect_refusal(TextEngine& engine, TextRequest request, Code code, const char* what) {
  try {
    engine.submit(std::move(request), std::make_shared<Parts>());
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), HasSubstr(what));
  }
}

void expect_call(const Parts::Call& call) {
  ASSERT_FALSE(call.id.empty());
  const json arguments = json::parse(call.arguments);
  if (call.name == "clock") {
    EXPECT_THAT(arguments.at("zone").get<std::string>(), AnyOf("UTC", "CET"));
  } else {
    EXPECT_EQ(call.name, "get_weather");
    EXPECT_THAT(arguments.at("city").get<std::string>(), AnyOf("Rome", "Oslo"));
    EXPECT_GE(arguments.at("days").get<int>(), 1);
    EXPECT_LE(arguments.at("days").get<int>(), 9);
  }
}

constexpr std::array kForms{
    ToolFormat::hermes,        ToolFormat::llama3,      ToolFormat::mistral,
    ToolFormat::mistral_named, ToolFormat::deepseek_v3, ToolFormat::deepseek_v31,
    ToolFormat::qwen3_coder,   ToolFormat::seed_oss,    ToolFormat::minimax_m2,
    ToolFormat::glm45,         ToolFormat::kimi_k2,     ToolFormat::harmony,
    ToolFormat::generic};

TEST(Tools, RequiredCallsComeInEveryForm) {
  for (const ToolFormat form : kForms) {
    SCOPED_TRACE(std::string(text::name_of(form)));
    const auto reasoning =
        form == ToolFormat::harmony ? ReasoningFormat::harmony : ReasoningFormat::none;
    for (const bool special : {true, false}) {
      const auto engine =
          make_llm_engine(model_with({form, reasoning}, special && !marks_of(form).empty()
                                                            ? marks_of(form)
                                                            : std::vector<std::string>{"<|x|>"}),
                          {});
      // The tiny model cannot spell a mark that is not ASCII.
      const bool deepseek = form == ToolFormat::deepseek_v3 || form == ToolFormat::deepseek_v31;
      if (deepseek && !special) continue;
      TextRequest request = chat(ToolChoice::required);
      request.chat.parallel_tool_calls = false;
      // Makes the reasoning end soon.
      request.sampling.logit_bias = {{-1, "<|end|>", 8}};
      if (form != ToolFormat::harmony || !special) request.sampling.logit_bias.clear();
      if (form == ToolFormat::harmony && !special) continue;  // it may reason for ever
      const auto parts = ask(*engine, request);
      EXPECT_EQ(parts->wait().reason, StopReason::eos);
      ASSERT_EQ(parts->calls.size(), 1u);
      expect_call(parts->calls[0]);
      if (form != ToolFormat::harmony) {
        EXPECT_EQ(parts->content, "");
      }
    }
  }
}

TEST(Tools, ANamedFunctionIsTheOneThatIsCalled) {
  const auto engine = make_llm_engine(model_with({ToolFormat::hermes, ReasoningFormat::none}), {});
  for (const char* name : {"clock", "get_weather"}) {
    TextRequest request = chat(ToolChoice::required);
    request.chat.tool = name;
    const auto parts = ask(*engine, request);
    EXPECT_EQ(parts->wait().reason, StopReason::eos);
    ASSERT_EQ(parts->calls.size(), 1u);
    EXPECT_EQ(parts->calls[0].name, name);
    expect_call(parts->calls[0]);
  }
}

// The grammar alone must do it: a model cannot begin a second call.
TEST(Tools, ANamedFunctionIsCalledOnceInEveryForm) {
  for (const ToolFormat form : kForms) {
    TextRequest request = chat(ToolChoice::required);
    request.chat.tool = "clock";
    AnswerForm answer = form_of(request, {form, ReasoningFormat::none});
    EXPECT_FALSE(answer.parallel_calls) << text::name_of(form);
    request.chat.tool.clear();
    EXPECT_TRUE(form_of(request, {form, ReasoningFormat::none}).parallel_calls);
  }
}

TEST(Tools, CallsOfTheGenericFormAreALineEach) {
  const auto engine = make_llm_engine(model_with({ToolFormat::generic, ReasoningFormat::none}), {});
  size_t most = 0;
  for (uint64_t seed = 0; seed < 40 && most < 2; ++seed) {
    const auto parts = ask(*engine, chat(ToolChoice::required, seed));
    if (parts->wait().complete != true) continue;
    for (const auto& call : parts->calls) expect_call(call);
    EXPECT_EQ(parts->content, "");
    most = std::max(most, parts->calls.size());
  }
  EXPECT_GT(most, 1u);
}

TEST(Tools, CallsMayBeSeveral) {
  const auto engine = make_llm_engine(
      model_with({ToolFormat::mistral, ReasoningFormat::none}, {"[TOOL_CALLS]"}), {});
  size_t most = 0;
  for (uint64_t seed = 0; seed < 40 && most < 2; ++seed) {
    const auto parts = ask(*engine, chat(ToolChoice::required, seed));
    if (parts->wait().complete != true) continue;
    for (const auto& call : parts->calls) {
      expect_call(call);
      EXPECT_EQ(call.id.size(), 9u);  // what Mistral's templates take
    }
    most = std::max(most, parts->calls.size());
  }
  EXPECT_GT(most, 1u);
}

TEST(Tools, KimisIdsNameTheFunctionAndCount) {
  const auto engine = make_llm_engine(
      model_with({ToolFormat::kimi_k2, ReasoningFormat::none}, marks_of(ToolFormat::kimi_k2)), {});
  TextRequest request = chat(ToolChoice::required);
  request.chat.tool = "clock";
  request.messages.push_back({.role = "assistant", .content = {}});
  request.messages.back().tool_calls = {{"functions.clock:0", "clock", "{}"}};
  request.messages.push_back({.role = "user", .content = "again"});
  const auto parts = ask(*engine, request);
  parts->wait();
  ASSERT_GE(parts->calls.size(), 1u);
  for (size_t i = 0; i < parts->calls.size(); ++i) {
    EXPECT_EQ(parts->calls[i].id, cat("functions.clock:", i + 1));
  }
}

TEST(Tools, StrictArgumentsFollowTheSchemaOnceACallHasBegun) {
  const auto engine = make_llm_engine(
      model_with({ToolFormat::hermes, ReasoningFormat::none}, marks_of(ToolFormat::hermes)), {});
  size_t calls = 0, texts = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    TextRequest request = chat(ToolChoice::automatic, seed);
    request.chat.tools = {weather(true), clock(true)};
    request.chat.parallel_tool_calls = false;
    request.sampling.logit_bias = {{-1, "<tool_call>", 6}};
    const auto parts = ask(*engine, request);
    texts += !parts->content.empty();
    EXPECT_THAT(parts->content, Not(HasSubstr("<tool_call>")));
    if (parts->wait().reason != StopReason::eos) continue;
    for (const auto& call : parts->calls) expect_call(call);
    calls += parts->calls.size();
  }
  EXPECT_GT(calls, 0u);
  EXPECT_GT(texts, 0u);
}

TEST(Tools, ATextOfAFormFollowsItInEveryForm) {
  const json schema = json::parse(
      R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"]})");
  for (const ToolFormat form : kForms) {
    SCOPED_TRACE(std::string(text::name_of(form)));
    // The tiny model cannot spell DeepSeek's marks, and it reasons for ever if it must spell
    // Harmony's.
    const bool harmony = form == ToolFormat::harmony;
    const bool special =
        harmony || form == ToolFormat::deepseek_v3 || form == ToolFormat::deepseek_v31;
    const auto engine = make_llm_engine(
        model_with({form, harmony ? ReasoningFormat::harmony : ReasoningFormat::none},
                   special ? marks_of(form) : std::vector<std::string>{"<|x|>"}),
        {});
    for (const auto kind : {Constraint::Kind::regex, Constraint::Kind::lark}) {
      TextRequest request = chat(ToolChoice::required);
      request.chat.parallel_tool_calls = false;
      if (harmony) request.sampling.logit_bias = {{-1, "<|end|>", 8}};
      const bool lark = kind == Constraint::Kind::lark;
      request.chat.tools = {
          {.name = "say",
           .json = R"({"type":"function","function":{"name":"say"}})",
           .parameters = schema.dump(),
           .input = {.kind = kind,
                     .text = lark ? "start: \"a\\n\" /[bc]/~2 \"\\\"\"" : "a\n[bc]{2}\"",
                     .choices = {}}}};
      const auto parts = ask(*engine, request);
      ASSERT_EQ(parts->calls.size(), 1u);
      const auto input = json::parse(parts->calls[0].arguments).at("input").get<std::string>();
      EXPECT_THAT(input, AnyOf("a\nbb\"", "a\nbc\"", "a\ncb\"", "a\ncc\""));
    }
  }
}

// Qwen3-Coder's texts stand unescaped between marks.
TEST(Tools, TextsBetweenMarksEndWhereTheyAreReadToEnd) {
  const Tool write{
      "write", R"({"type":"function","function":{"name":"write"}})",
      R"({"type":"object","properties":{"path":{"type":"string"},"body":{"type":"string"}},"required":["path","body"]})",
      true};
  const text::OutputFormat format{.tools = ToolFormat::qwen3_coder};
  const auto grammar = grammar::testing::compile(
      answer_grammar({.constraint = {}, .format = format, .tools = {write}, .call_required = true},
                     [](std::string_view) { return false; }));
  const auto call = [](std::string_view body) {
    return cat(
        "<tool_call>\n<function=write>\n<parameter=path>\np\n</parameter>\n<parameter=body>\n",
        body, "\n</parameter>\n</function>\n</tool_call>");
  };
  for (const char* body : {"", "a\n\n\xC3\xA9", "</parameter>", "</parameter>\nx", "</function>",
                           "\n</parameter>\n", "see <parameter=path>", "</tool_call>",
                           "</parameter></parameter>", "</function>x</tool_call>"}) {
    EXPECT_TRUE(grammar::testing::matches(grammar, call(body))) << body;
    text::OutputParser parser({.format = format, .functions = {{write.name, write.parameters}}});
    std::string arguments;
    for (const auto& deltas : {parser.push(call(body)), parser.finish()}) {
      for (const auto& delta : deltas) {
        if (delta.kind == text::OutputDelta::Kind::call_arguments) arguments += delta.text;
      }
    }
    EXPECT_EQ(json::parse(arguments), json({{"path", "p"}, {"body", body}})) << arguments;
  }
  for (const char* body : {"</parameter></function>", "</parameter> \n<parameter=path>",
                           "x\n<parameter=y>", "<parameter=body>", "</function></tool_call>",
                           "</function>\n<function=write>", "</parameter></tool_call>"}) {
    EXPECT_FALSE(grammar::testing::matches(grammar, call(body))) << body;
  }
}

// A double would make 1.8446744073709552e+19 of it.
TEST(Tools, IntegersOfSchemasAreNotRounded) {
  Tool get{
      "get", R"({"type":"function","function":{"name":"get"}})",
      R"({"type":"object","properties":{"id":{"const":18446744073709551616}},"required":["id"]})"};
  const auto compiled = [&](ToolFormat form) {
    return grammar::testing::compile(answer_grammar(
        {.constraint = {}, .format = {.tools = form}, .tools = {get}, .call_required = true},
        [](std::string_view) { return false; }));
  };
  const auto json_call = [](const char* id) {
    return cat(R"({"name": "get", "arguments": {"id": )", id, "}}");
  };
  const auto xml_call = [](const char* id) {
    return cat("<tool_call>\n<function=get>\n<parameter=id>\n", id,
               "\n</parameter>\n</function>\n</tool_call>");
  };
  const auto json_form = compiled(ToolFormat::generic), xml = compiled(ToolFormat::qwen3_coder);
  EXPECT_TRUE(grammar::testing::matches(json_form, json_call("18446744073709551616")));
  EXPECT_TRUE(grammar::testing::matches(xml, xml_call("18446744073709551616")));
  get.strict = true;  // one more than the integers of 64 bits, not what a double rounds it to
  const auto exact = compiled(ToolFormat::generic), of_xml = compiled(ToolFormat::qwen3_coder);
  for (const char* id : {"18446744073709551615", "18446744073709551616", "18446744073709551617"}) {
    const bool right = std::string_view(id).ends_with('6');
    EXPECT_EQ(grammar::testing::matches(exact, json_call(id)), right) << id;
    EXPECT_EQ(grammar::testing::matches(of_xml, xml_call(id)), right) << id;
  }
}

TEST(Tools, AConstraintHoldsBehindTheReasoning) {
  const std::vector<std::string> marks{"<think>", "</think>"};
  const char* opens = "{{ messages[0].content }}<think>\n";
  const char* plain = "{{ messages[0].content }}";
  for (const char* code : {opens, plain}) {
    const auto engine =
        make_llm_engine(model_with({ToolFormat::none, ReasoningFormat::think}, marks, code), {});
    size_t thoughts = 0;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      TextRequest request = chat(ToolChoice::automatic, seed);
      request.chat.tools.clear();
      request.sampling.logit_bias = {{-1, "</think>", 5}, {-1, "<think>", 3}};
      request.constraint = {.kind = Constraint::Kind::regex, .text = "[0-9]{3}", .choices = {}};
      const auto parts = ask(*engine, request);
      EXPECT_EQ(parts->wait().complete, true);
      EXPECT_TRUE(parts->content.size() == 3 &&
                  parts->content.find_first_not_of("0123456789") == std::string::npos)
          << parts->content;
      thoughts += !parts->reasoning.empty();
    }
    EXPECT_GT(thoughts, 0u);
  }
}

TEST(Tools, WhereNoFormIsWantedTheyAreRefused) {
  const auto engine = make_llm_engine(model_with({}), {});
  expect_refusal(*engine, chat(ToolChoice::automatic), Code::unsupported, "--tool-parser");
  TextRequest none = chat(ToolChoice::none);
  none.max_tokens = 3;
  EXPECT_TRUE(ask(*engine, none)->calls.empty());
}

TEST(Tools, BadOnesAreRefusedAtTheDoor) {
  const auto engine = make_llm_engine(model_with({ToolFormat::hermes, ReasoningFormat::none}), {});
  TextRequest unknown = chat(ToolChoice::required);
  unknown.chat.tool = "nobody";
  expect_refusal(*engine, unknown, Code::invalid_argument, "nobody");
  TextRequest strict = chat(ToolChoice::automatic);
  strict.chat.tools[0].strict = true;
  strict.chat.tools[0].parameters = R"({"properties":{"a":{"type":"array","uniqueItems":true}}})";
  expect_refusal(*engine, strict, Code::unsupported, "uniqueItems");
  TextRequest name = chat(ToolChoice::automatic);
  name.chat.tools[0].name = "a\"b";
  expect_refusal(*engine, name, Code::invalid_argument, "letters");
}

TEST(Tools, TheTemplateIsToldOfThem) {
  const TextModel model =
      model_with({ToolFormat::hermes, ReasoningFormat::none}, {},
                 "{{ tools | length if tools else 'none' }}"
                 "{% for m in messages %}|{{ m.role }}:"
                 "{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments.a }}"
                 "{{ m.content is none }}{% else %}{{ m.content }}{% endif %}"
                 "{{ m.tool_call_id }}{% endfor %}{{ enable_thinking }}");
  const std::vector<ChatMessage> messages{
      {"user", "hi"},
      {.role = "assistant", .content = "", .tool_calls = {{"c1", "f", R"({"a": 7})"}}},
      {.role = "tool", .content = "res", .tool_call_id = "c1"}};
  ChatOptions options{.tools = {weather(), clock()},
                      .template_variables = R"({"enable_thinking": false})"};
  EXPECT_EQ(model.render(messages, options), "2|user:hi|assistant:7True|tool:resc1False");
  options.tool_choice = ToolChoice::none;
  options.template_variables.clear();
  EXPECT_EQ(model.render({{"user", "hi"}}, options), "none|user:hi");
}

TEST(Tools, HarmonysTemplateIsToldAnEffortThatItKnows) {
  const auto told = [](ReasoningFormat reasoning, const std::string& effort) {
    const TextModel model =
        model_with({ToolFormat::none, reasoning}, {}, "{{ reasoning_effort }} {{ a }}");
    const ChatOptions options{.template_variables =
                                  cat(R"({"reasoning_effort":")", effort, R"(","a":1})")};
    return model.render({{"user", "hi"}}, options);
  };
  EXPECT_EQ(told(ReasoningFormat::harmony, "none"), "low 1");
  EXPECT_EQ(told(ReasoningFormat::harmony, "minimal"), "low 1");
  EXPECT_EQ(told(ReasoningFormat::harmony, "medium"), "medium 1");
  EXPECT_EQ(told(ReasoningFormat::harmony, "xhigh"), "high 1");
  EXPECT_EQ(told(ReasoningFormat::think, "minimal"), "minimal 1");
}

TEST(Tools, ArgumentsAreATextWhereTheTemplateJoinsThem) {
  const TextModel model =
      model_with({}, {}, "{{ 'x' + messages[0].tool_calls[0].function.arguments }}");
  const std::vector<ChatMessage> messages{
      {.role = "assistant", .content = "", .tool_calls = {{"c1", "f", R"({"a": 7})"}}}};
  EXPECT_EQ(model.render(messages, {}), R"(x{"a": 7})");
}

// SmolLM2's template joins it.
TEST(Tools, CallsHaveAnEmptyTextWhereTheTemplateJoinsIt) {
  const TextModel model = model_with({}, {}, "{{ '<' + messages[0].content + '>' }}");
  const std::vector<ChatMessage> messages{
      {.role = "assistant", .content = "", .tool_calls = {{"c1", "f", R"({"a": 7})"}}}};
  EXPECT_EQ(model.render(messages, {}), "<>");
}

// A client may send any text as the arguments of an earlier call.
TEST(Tools, ArgumentsThatAreNestedDeeplyAreRefused) {
  const auto render = [](int levels, const char* chat_template, ToolPromptPlace place) {
    TextModel model = model_with({ToolFormat::hermes, ReasoningFormat::none}, {}, chat_template);
    model.tool_prompt_place = place;
    std::string arguments;
    for (int i = 0; i < levels; ++i) arguments += R"({"a":)";
    arguments += '1' + std::string(static_cast<size_t>(levels), '}');
    return model.render(
        {{.role = "assistant", .content = "", .tool_calls = {{"c", "f", arguments}}}},
        {.tools = {weather()}});
  };
  for (const ToolPromptPlace place :
       {ToolPromptPlace::chat_template, ToolPromptPlace::system, ToolPromptPlace::user}) {
    for (const char* const chat_template : {"said", "{{ messages | tojson }}"}) {
      EXPECT_THAT(render(64, chat_template, place), Not(IsEmpty()));
      for (const int levels : {65, 300'000}) {
        EXPECT_THAT([&] { render(levels, chat_template, place); },
                    ThrowsMessage<Error>(HasSubstr("more than 64 deep")));
      }
    }
  }
}

// OpenAI: "Omitting parameters defines a function with an empty parameter list."
TEST(Tools, AFunctionWithoutParametersIsCalledWithNone) {
  const auto engine = make_llm_engine(model_with({ToolFormat::hermes, ReasoningFormat::none}), {});
  for (const char* parameters :
       {"", R"({"type":"object","properties":{}})", R"({"properties":{},"required":[]})"}) {
    TextRequest request = chat(ToolChoice::required);
    Tool tool = clock();
    tool.parameters = parameters;
    request.chat.tools = {tool};
    request.chat.parallel_tool_calls = false;
    const auto parts = ask(*engine, request);
    ASSERT_EQ(parts->calls.size(), 1u);
    EXPECT_EQ(json::parse(parts->calls[0].arguments), json::object());
  }
}

TEST(Tools, ArgumentsAreAnObjectWhateverTheSchemaSays) {
  for (const char* parameters : {R"({"type":["null","object"]})", R"({"type":"string"})"}) {
    const auto grammar =
        grammar::testing::compile(answer_grammar({.constraint = {},
                                                  .format = {.tools = ToolFormat::generic},
                                                  .tools = {{"f", "", parameters}},
                                                  .call_required = true},
                                                 [](std::string_view) { return false; }));
    EXPECT_TRUE(grammar::testing::matches(grammar, R"({"name": "f", "arguments": {"a":1}})"));
    for (const char* other : {"null", R"("a")"}) {
      EXPECT_FALSE(
          grammar::testing::matches(grammar, cat(R"({"name": "f", "arguments": )", other, "}")));
    }
  }
}

constexpr const char* kPlainTemplate =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";

TEST(ToolPrompt, TemplatesThatShowToolsAreKnown) {
  EXPECT_FALSE(shows_tools(text::ChatTemplate(kPlainTemplate)));
  EXPECT_TRUE(shows_tools(text::ChatTemplate("{% if tools %}{{ tools | tojson }}{% endif %}")));
  EXPECT_TRUE(shows_tools(text::ChatTemplate("{{ raise_exception('no') }}")));
}

// The answers' parser judges it: the prompt must show calls in the form that we parse.
TEST(ToolPrompt, CallsAreWrittenAsTheyAreRead) {
  const std::vector<ToolCall> calls = {{"", "f", R"({"a": "x", "n": 2})"}, {"", "g", "{}"}};
  for (const ToolFormat format : kForms) {
    const size_t count = format == ToolFormat::harmony ? 1 : 2;  // one a turn
    text::OutputParserOptions options{.format = {format, ReasoningFormat::none}, .functions = {}};
    options.functions = {{"f", R"({"properties":{"a":{"type":"string"},"n":{"type":"integer"}}})"},
                         {"g", ""}};
    text::OutputParser parser(options);
    auto deltas = parser.push(written_calls({calls.begin(), calls.begin() + count}, format));
    for (auto& delta : parser.finish()) deltas.push_back(delta);
    std::vector<std::string> names, arguments;
    for (const auto& delta : deltas) {
      if (delta.kind == text::OutputDelta::Kind::call_begin) {
        names.push_back(delta.text);
        arguments.emplace_back();
      } else if (delta.call >= 0) {
        arguments.back() += delta.text;
      } else {
        EXPECT_EQ(delta.text, "") << text::name_of(format);
      }
    }
    ASSERT_EQ(names.size(), count) << text::name_of(format);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(names[i], calls[i].name);
      EXPECT_EQ(json::parse(arguments[i]), json::parse(calls[i].arguments));
    }
  }
}

TEST(ToolPrompt, TheSystemMessageTellsAndResultsAreTheUsers) {
  TextModel model = tiny_model();
  model.chat_template = std::make_unique<text::ChatTemplate>(kPlainTemplate);
  model.format.tools = ToolFormat::hermes;
  model.tool_prompt_place = ToolPromptPlace::system;
  ChatOptions options;
  const std::vector<ChatMessage> chat = {
      {.role = "system", .content = "Be brief."},
      {.role = "user", .content = "Hi"},
      {.role = "assistant", .content = "So.", .tool_calls = {{"1", "f", R"({"a":1})"}}},
      {.role = "tool", .content = "7", .tool_call_id = "1", .name = "f"},
      {.role = "tool", .content = "8", .tool_call_id = "2"}};
  const std::string plain = model.render({chat.begin(), chat.begin() + 2}, options);
  EXPECT_EQ(plain, "[system]Be brief.[user]Hi");
  options.tools = {{.name = "f",
                    .json = R"({"type":"function","function":{"name":"f","description":"Finds"}})",
                    .parameters = ""}};
  const std::string told = model.render(chat, options);
  EXPECT_THAT(told, ::testing::StartsWith("[system]Be brief.\n\nYou may call"));
  EXPECT_THAT(told, HasSubstr(R"({"name":"f","description":"Finds"})"));
  EXPECT_THAT(told, HasSubstr("<tool_call>\n{\"name\":\"NAME\""));
  EXPECT_THAT(told,
              ::testing::EndsWith(
                  "[user]Hi[assistant]So.\n<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}"
                  "\n</tool_call>[user]Result of f:\n7\n\nResult:\n8"));
  model.tool_prompt_place = ToolPromptPlace::user;
  EXPECT_THAT(model.render({chat.begin() + 1, chat.begin() + 2}, options),
              ::testing::AllOf(::testing::StartsWith("[user]You may call"),
                               ::testing::EndsWith("holds its result.\n\nHi")));
  options.tool_choice = ToolChoice::none;
  EXPECT_EQ(model.render({chat.begin(), chat.begin() + 2}, options), plain);
}

TEST(ToolPrompt, TemplatesThatShowSystemMessagesAreKnown) {
  EXPECT_TRUE(takes_system(text::ChatTemplate(kPlainTemplate)));
  EXPECT_FALSE(takes_system(text::ChatTemplate(
      "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}x")));
  EXPECT_FALSE(takes_system(text::ChatTemplate(
      "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}")));
}

}  // namespace
}  // namespace rbee::engine
