// Model outputs in the forms that their makers publish, whole and cut at every byte.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "rbee/text/output/output_parser.h"
#include "tests/support/data_folder.h"
#include "tests/units/output/samples.h"

namespace rbee::text {
namespace {

using nlohmann::json;
using Kind = OutputDelta::Kind;

// Built at one place: the sign | of these is U+FF5C, the gap U+2581.
std::string deepseek_mark(std::string words) {
  for (size_t at = words.find('_'); at != words.npos; at = words.find('_', at + 3)) {
    words.replace(at, 1, "\xE2\x96\x81");
  }
  return "<\xEF\xBD\x9C" + words + "\xEF\xBD\x9C>";
}

std::string deepseek_v3_call(const std::string& name, const std::string& arguments) {
  return deepseek_mark("tool_call_begin") + "function" + deepseek_mark("tool_sep") + name +
         "\n```json\n" + arguments + "\n```" + deepseek_mark("tool_call_end");
}

const Call kParis{"get_weather", R"({"city": "Paris"})"};
const Call kRome{"get_weather", R"({"city": "Rome", "days": 2})"};

std::vector<Sample> hermes_samples() {
  const auto call = [](const Call& one) {
    return cat("<tool_call>\n{\"name\": \"", one.name, "\", \"arguments\": ", one.arguments,
               "}\n</tool_call>");
  };
  const auto t = ToolFormat::hermes;
  return {
      {"one", t, kNoReasoning, call(kParis), {"", "", {kParis}}},
      {"two", t, kNoReasoning, call(kParis) + "\n" + call(kRome) + "\n", {"", "", {kParis, kRome}}},
      {"content", t, kNoReasoning, "Let me see.\n\n" + call(kParis), {"", "Let me see.", {kParis}}},
      {"around", t, kNoReasoning, "a " + call(kParis) + "\nb c", {"", "ab c", {kParis}}},
      {"none",
       t,
       kNoReasoning,
       "Plain <b>text</b> <tool\n ",
       {"", "Plain <b>text</b> <tool\n ", {}}},
      {"thinking",
       t,
       kThink,
       "<think>\nHm, Paris.\n</think>\n\n" + call(kParis),
       {"Hm, Paris.", "", {kParis}}},
      {"thinking only",
       t,
       kThink,
       "<think>\nHm.\n\nSo.\n</think>\n\nHello!\n",
       {"Hm.\n\nSo.", "Hello!\n", {}}},
      {"opened", t, kThink, "Hm.\n</think>\n\nHello!", {"Hm.", "Hello!", {}}, true},
      {"cut off", t, kThink, "Hm, a long", {"Hm, a long", "", {}}, true},
      {"empty thoughts", t, kThink, "<think>\n\n</think>\n\nHi", {"", "Hi", {}}},
      {"mark inside an answer",
       t,
       kThink,
       "Say <think> and</think>",
       {"", "Say <think> and</think>", {}}},
      {"other order",
       t,
       kNoReasoning,
       R"(<tool_call>{"arguments": {"a": "}\"{"}, "id": 3, "name": "f"}</tool_call>)",
       {"", "", {{"f", R"({"a": "}\"{"})"}}}},
      {"no arguments",
       t,
       kNoReasoning,
       R"(<tool_call>{"name": "f"}</tool_call>)",
       {"", "", {{"f", "{}"}}}},
      {"arguments as a text",
       t,
       kNoReasoning,
       R"(<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>)",
       {"", "", {{"f", R"({"a": 1})"}}}},
      {"a brace too much",
       t,
       kNoReasoning,
       R"(<tool_call>{"name": "f", "arguments": {}}}</tool_call> x)",
       {"", "x", {{"f", "{}"}}}},
      {"no JSON", t, kNoReasoning, "<tool_call>f(1)</tool_call>!", {"", "f(1)!", {}}},
      {"cut in arguments",
       t,
       kNoReasoning,
       R"(<tool_call>{"name": "f", "arguments": {"a": [1)",
       {"", "", {{"f", R"({"a": [1)"}}}},
      {"not an ASCII one",
       t,
       kNoReasoning,
       "Gr\xC3\xBC\xC3\x9F \xF0\x9F\x8C\xA6 " + call(kParis),
       {"", "Gr\xC3\xBC\xC3\x9F \xF0\x9F\x8C\xA6", {kParis}}},
  };
}

std::vector<Sample> llama_samples() {
  const auto t = ToolFormat::llama3;
  const std::string paris = R"({"name": "get_weather", "parameters": {"city": "Paris"}})";
  const std::string rome = R"({"name": "get_weather", "parameters": {"city": "Rome", "days": 2}})";
  return {
      {"one", t, kNoReasoning, paris, {"", "", {kParis}}},
      {"with type",
       t,
       kNoReasoning,
       R"({"type": "function", "name": "f", "parameters": {}})",
       {"", "", {{"f", "{}"}}}},
      {"tag", t, kNoReasoning, "<|python_tag|>" + paris, {"", "", {kParis}}},
      {"two", t, kNoReasoning, paris + "; " + rome, {"", "", {kParis, kRome}}},
      {"two tags",
       t,
       kNoReasoning,
       "<|python_tag|>" + paris + "\n<|python_tag|>" + rome,
       {"", "", {kParis, kRome}}},
      {"text",
       t,
       kNoReasoning,
       "Hello {\"name\": \"get_weather\"}",
       {"", "Hello {\"name\": \"get_weather\"}", {}}},
      {"text then tag", t, kNoReasoning, "Wait. <|python_tag|>" + paris, {"", "Wait.", {kParis}}},
      {"JSON that is an answer",
       t,
       kNoReasoning,
       R"({"answer": {"name": "f"}})",
       {"", R"({"answer": {"name": "f"}})", {}}},
      {"nobody's function",
       t,
       kNoReasoning,
       R"({"name": "Ann", "parameters": 3} x)",
       {"", R"({"name": "Ann", "parameters": 3} x)", {}}},
  };
}

std::vector<Sample> mistral_samples() {
  const auto t = ToolFormat::mistral;
  const auto named = ToolFormat::mistral_named;
  const std::string one = R"({"name": "get_weather", "arguments": {"city": "Paris"}})";
  return {
      {"list",
       t,
       kNoReasoning,
       "[TOOL_CALLS] [" + one +
           R"(, {"name": "get_weather", "arguments": {"city": "Rome", "days": 2}, "id": "abc"}])",
       {"", "", {kParis, kRome}}},
      {"behind content",
       t,
       kNoReasoning,
       "Sure. [TOOL_CALLS][" + one + "]",
       {"", "Sure.", {kParis}}},
      {"named",
       named,
       kNoReasoning,
       "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Paris\"}[TOOL_CALLS]get_weather[ARGS]{\"city\": "
       "\"Rome\", \"days\": 2}",
       {"", "", {kParis, kRome}}},
      {"named with an id",
       named,
       ReasoningFormat::mistral,
       "[THINK]So.[/THINK][TOOL_CALLS]get_weather[CALL_ID]123456789[ARGS]{\"city\": \"Paris\"}",
       {"So.", "", {kParis}}},
      {"named without a mark",
       named,
       kNoReasoning,
       "[TOOL_CALLS]get_weather{\"city\": \"Paris\"}",
       {"", "", {kParis}}},
      {"no name", named, kNoReasoning, "[TOOL_CALLS]what is this? {", {"", "what is this? {", {}}},
  };
}

std::vector<Sample> deepseek_samples() {
  const std::string begin = deepseek_mark("tool_calls_begin"),
                    end = deepseek_mark("tool_calls_end");
  const auto v31 = [](const Call& call) {
    return deepseek_mark("tool_call_begin") + call.name + deepseek_mark("tool_sep") +
           call.arguments + deepseek_mark("tool_call_end");
  };
  return {
      {"v3",
       ToolFormat::deepseek_v3,
       kThink,
       "Hm.\n</think>\n\nI look." + begin + deepseek_v3_call(kParis.name, kParis.arguments) + "\n" +
           deepseek_v3_call(kRome.name, kRome.arguments) + end,
       {"Hm.", "I look.", {kParis, kRome}},
       true},
      {"v3.1",
       ToolFormat::deepseek_v31,
       kNoReasoning,
       begin + v31(kParis) + v31(kRome) + end,
       {"", "", {kParis, kRome}}},
      {"text",
       ToolFormat::deepseek_v31,
       kNoReasoning,
       "<\xEF\xBD\x9Ctool> x",
       {"", "<\xEF\xBD\x9Ctool> x", {}}},
  };
}

std::vector<Sample> harmony_samples() {
  const auto t = ToolFormat::harmony;
  const auto r = ReasoningFormat::harmony;
  const std::string analysis =
      "<|channel|>analysis<|message|>The user asks.<|end|><|start|>assistant";
  return {
      {"final",
       t,
       r,
       analysis + "<|channel|>final<|message|>Hello.<|return|>",
       {"The user asks.", "Hello.", {}}},
      {"call",
       t,
       r,
       analysis + "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
                  "{\"city\": \"Paris\"}<|call|>",
       {"The user asks.", "", {kParis}}},
      {"recipient in front",
       t,
       r,
       analysis + " to=functions.get_weather<|channel|>commentary json<|message|>"
                  "{\"city\": \"Paris\"}",
       {"The user asks.", "", {kParis}}},
      {"preamble",
       t,
       r,
       "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.f<|message|><|call|>",
       {"", "I look.", {{"f", "{}"}}}},
      {"a tool of its own",
       t,
       r,
       "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
       {"print(1)", "", {}}},
      {"no header", t, r, "Hello.", {"", "Hello.", {}}},
      {"cut in a header", t, r, "<|channel|>fin", {"", "", {}}},
  };
}

// JSON that models without a form write, or models that do not keep to theirs.
std::vector<Sample> loose_samples() {
  const auto t = ToolFormat::generic, h = ToolFormat::hermes;
  const char* call = R"({"name": "get_weather", "arguments": {"city": "Paris", "days": 2}})";
  const Parts one{"", "", {{"get_weather", R"({"city": "Paris", "days": 2})"}}};
  const auto with = [&](std::string content) {
    Parts out = one;
    out.content = std::move(content);
    return out;
  };
  std::vector<Sample> out = {
      {"bare", t, kNoReasoning, call, one},
      {"bare, of a model with marks", h, kNoReasoning, call, one},
      {"fenced", h, kNoReasoning, cat("```json\n", call, "\n```"), one},
      {"fenced without a word", t, kNoReasoning, cat("```\n", call, "\n```\n"), one},
      {"between words", h, kNoReasoning, cat("Let me see.\n\n```json\n", call, "\n```\n Done."),
       with("Let me see.Done.")},
      {"between marks of another form", t, kNoReasoning,
       cat("<tool_call>\n", call, "\n</tool_call>"), one},
      {"between tools", h, kNoReasoning, cat("<tools>\n", call, "\n</tools>"), one},
      {"under other names",
       t,
       kNoReasoning,
       R"({"type": "function", "function": "f", "parameters": {"a": [1, {"b": "}"}]}})",
       {"", "", {{"f", R"({"a": [1, {"b": "}"}]})"}}}},
      {"an array",
       t,
       kNoReasoning,
       R"([{"name": "f", "arguments": {}}, {"name": "f", "arguments": {"a": 1}}])",
       {"", "", {{"f", "{}"}, {"f", R"({"a": 1})"}}}},
      {"one on each line",
       t,
       kNoReasoning,
       "{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
       {"", "", {{"f", "{}"}, {"f", R"({"a": 1})"}}}},
      {"of Python",
       t,
       kNoReasoning,
       R"({'name': 'f', 'arguments': {'a': True, 'b': None, 'c': 'it\'s "so"', 'd': "True"}})",
       {"", "", {{"f", R"({"a": true, "b": null, "c": "it's \"so\"", "d": "True"})"}}}},
      {"a large number stays",
       t,
       kNoReasoning,
       R"({"name": "f", "arguments": {"a": 123456789012345678901234567890}})",
       {"", "", {{"f", R"({"a": 123456789012345678901234567890})"}}}},
      {"Python between marks",
       h,
       kNoReasoning,
       "<tool_call>{'name': 'f', 'arguments': {'a': False}}</tool_call>",
       {"", "", {{"f", R"({"a": false})"}}}},
      {"a form's own call comes first",
       h,
       kNoReasoning,
       cat("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n", call),
       {"", call, {{"f", "{}"}}}},
  };
  // Text that is not a call passes unchanged.
  for (const char* text :
       {R"({"name": "nobody", "arguments": {}})", R"({"name": "f"})", R"({"answer": 42})",
        R"({"name": "get_weather", "arguments": {"days": 2}})",
        R"({"name": "get_weather", "arguments": {"city": 7}})",
        R"(So {"name": "f", "arguments": {}})", R"({"calls": [
{"name": "f", "arguments": {}}
]})",
        "```python\nx = 1\n{\"name\": \"f\", \"arguments\": {}}\n```\nDone.",
        "[1] See [2].\n[ ] done", "{ don't }", "`a` and ```b```\n<b>", "```json\n{\"a\": 1}\n```",
        "{\"name\": \"f\", \"argu", "```json\n{\"name\": \"f\"", "a\n\n b  ", "{}"}) {
    for (const ToolFormat format : {t, h}) {
      out.push_back({text, format, kNoReasoning, text, {"", text, {}}});
    }
  }
  return out;
}

std::vector<Sample> all_samples() {
  std::vector<Sample> out;
  for (const auto& part : {hermes_samples(), llama_samples(), mistral_samples(), deepseek_samples(),
                           harmony_samples(), xml_samples(), other_samples(), loose_samples()}) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

OutputParser parser_of(const Sample& sample) {
  const std::string schema =
      R"({"properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
          "required": ["city"]})";
  return OutputParser({.format = {.tools = sample.tools, .reasoning = sample.reasoning},
                       .reasoning_open = sample.open,
                       .functions = {{"get_weather", schema}, {"f", ""}}});
}

Parts parse(const Sample& sample, const std::vector<std::string_view>& pieces) {
  OutputParser parser = parser_of(sample);
  Parts out;
  for (const std::string_view piece : pieces) out.add(parser.push(piece));
  out.add(parser.finish());
  return out;
}

TEST(Output, SamplesAreTakenApart) {
  for (const Sample& sample : all_samples()) {
    EXPECT_EQ(parse(sample, {sample.text}), sample.wanted) << sample.name;
  }
}

TEST(Output, CutsChangeNothing) {
  for (const Sample& sample : all_samples()) {
    const std::string_view text = sample.text;
    std::vector<std::string_view> bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      EXPECT_EQ(parse(sample, {text.substr(0, i), text.substr(i)}), sample.wanted)
          << sample.name << " cut at " << i;
      bytes.push_back(text.substr(i, 1));
    }
    EXPECT_EQ(parse(sample, bytes), sample.wanted) << sample.name << " byte by byte";
  }
}

TEST(Output, ArgumentsComeWhileTheyAreWritten) {
  Sample sample = hermes_samples().front();
  OutputParser parser = parser_of(sample);
  (void)parser.push("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": ");
  const auto deltas = parser.push("{\"city\": \"Pa");
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0], (OutputDelta{Kind::call_arguments, "{\"city\": \"Pa", 0}));
  EXPECT_EQ(parser.whole_calls(), 0);
  (void)parser.push("ris\"}}");
  EXPECT_EQ(parser.whole_calls(), 1);
}

TEST(Output, TextIsNotHeldBackLongerThanItMayBeAMark) {
  OutputParser parser = parser_of(hermes_samples().front());
  EXPECT_EQ(parser.push("Hello <to").front().text, "Hello");
  EXPECT_EQ(parser.push("day").front().text, " <today");
}

TEST(Output, AnObjectIsHeldBackOnlyWhileItMayBeACall) {
  OutputParser parser = parser_of({"", ToolFormat::generic, kNoReasoning, "", {}});
  EXPECT_TRUE(parser.push("{\"name\": \"f\", \"argum").empty());
  EXPECT_EQ(parser.push("ent\": ").front().text, "{\"name\": \"f\", \"argument\": ");
  EXPECT_EQ(parser.push("1, \"a").front().text, "1, \"a");
}

TEST(Output, ALongObjectIsNoCall) {
  OutputParser parser = parser_of({"", ToolFormat::generic, kNoReasoning, "", {}});
  const std::string text =
      cat(R"({"name": "f", "arguments": {"a": ")", std::string(70000, 'x'), "\"}}");
  Parts out;
  out.add(parser.push(text));
  out.add(parser.finish());
  EXPECT_EQ(out, (Parts{"", text, {}}));
}

TEST(Output, ForcedCallsOfTheGenericFormComeWhileTheyAreWritten) {
  OutputParser parser(
      {.format = {.tools = ToolFormat::generic}, .functions = {{"f", ""}}, .calls_only = true});
  (void)parser.push(R"({"name": "f", "arguments": )");
  EXPECT_EQ(parser.push(R"({"a": "b)").front().text, R"({"a": "b)");
}

TEST(Output, OneCallIsTakenWhereOneIsWanted) {
  OutputParser parser(
      {.format = {.tools = ToolFormat::generic}, .functions = {{"f", ""}}, .one_call = true});
  Parts out;
  out.add(parser.push(R"([{"name": "f", "arguments": {}}, {"name": "f", "arguments": {}}])"));
  out.add(parser.finish());
  EXPECT_EQ(out.calls.size(), 1u);
}

TEST(OutputFormat, IsFoundInTheTemplate) {
  const auto expect = [](std::string_view text, ToolFormat tools, ReasoningFormat reasoning) {
    EXPECT_EQ(detect_output_format(text), (OutputFormat{tools, reasoning})) << text;
  };
  const auto none = ReasoningFormat::none;
  expect("{{ messages }}", ToolFormat::none, none);
  expect("{{ '<tool_call>' }} {{ '</think>' }}", ToolFormat::hermes, kThink);
  expect("<tool_call> <function= <parameter=", ToolFormat::qwen3_coder, none);
  expect("<seed:think> <seed:tool_call> <function= <parameter=", ToolFormat::seed_oss,
         ReasoningFormat::seed);
  expect("<minimax:tool_call> <invoke name= <think>", ToolFormat::minimax_m2, kThink);
  expect("<tool_call>{name} <arg_key> <think></think>", ToolFormat::glm45, kThink);
  expect("<|tool_call_begin|> <|tool_call_argument_begin|>", ToolFormat::kimi_k2, none);
  expect("[TOOL_CALLS] [", ToolFormat::mistral, none);
  expect("[THINK] [TOOL_CALLS] [ARGS]", ToolFormat::mistral_named, ReasoningFormat::mistral);
  expect("<|start_header_id|> {{ tools }} {\"name\": x, \"parameters\": y}", ToolFormat::llama3,
         none);
  expect(deepseek_mark("tool_call_begin") + "```json", ToolFormat::deepseek_v3, none);
  expect(deepseek_mark("tool_call_begin"), ToolFormat::deepseek_v31, none);
  expect("<|start|>assistant<|channel|>", ToolFormat::harmony, ReasoningFormat::harmony);
}

// Templates in the families' published formats; those without tools have no form.
TEST(OutputFormat, FamiliesAreTold) {
  const auto expect = [](const char* name, ToolFormat tools, ReasoningFormat reasoning) {
    const auto path = std::filesystem::path(test::data_folder()) /
                      "units/template/goldens/templates" / cat(name, ".jinja");
    std::ifstream file(path);
    ASSERT_TRUE(file) << path;
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(detect_output_format(source), (OutputFormat{tools, reasoning})) << name;
  };
  const auto none = ReasoningFormat::none;
  expect("harmony", ToolFormat::harmony, ReasoningFormat::harmony);
  expect("hermes_tools", ToolFormat::hermes, none);
  expect("qwen25_tools", ToolFormat::hermes, none);
  expect("qwen3_thinking", ToolFormat::hermes, kThink);
  expect("llama31_tools", ToolFormat::llama3, none);
  expect("mistral_v3_tools", ToolFormat::mistral, none);
  expect("deepseek_r1", ToolFormat::none, kThink);
  expect("deepseek_v3", ToolFormat::deepseek_v3, none);
  expect("chatml", ToolFormat::none, none);
  expect("llama3", ToolFormat::none, none);
  expect("gemma3", ToolFormat::none, none);
}

TEST(OutputFormat, NamesAreReadAndWritten) {
  EXPECT_EQ(parse_tool_format("hermes"), ToolFormat::hermes);
  EXPECT_EQ(parse_reasoning_format("think"), ReasoningFormat::think);
  EXPECT_FALSE(parse_tool_format("hermess"));
  EXPECT_FALSE(parse_reasoning_format(""));
  EXPECT_EQ(name_of(ToolFormat::deepseek_v31), "deepseek_v31");
  EXPECT_EQ(name_of(ReasoningFormat::harmony), "harmony");
}

TEST(OutputFormat, MarksAreThoseOfTheForm) {
  const OutputFormat harmony{ToolFormat::harmony, ReasoningFormat::harmony};
  EXPECT_TRUE(is_output_mark(harmony, "<|channel|>"));
  EXPECT_FALSE(is_output_mark(harmony, "<|endoftext|>"));
  EXPECT_FALSE(is_output_mark({}, "<|channel|>"));
  EXPECT_TRUE(is_output_mark({ToolFormat::llama3, ReasoningFormat::none}, "<|python_tag|>"));
}

}  // namespace
}  // namespace rbee::text
