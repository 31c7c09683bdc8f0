// Chats through templates in Go's form. What is expected follows from the page of Ollama's
// templates: https://docs.ollama.com/modelfile#template

#include <gmock/gmock.h>

#include <filesystem>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/text/go_template/go_template.h"
#include "rbee/text/template/chat_template.h"
#include "tests/support/data_folder.h"

namespace rbee::text {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTurns =
    "{{ if .System }}<s>{{ .System }}</s>{{ end }}{{ if .Prompt }}<u>{{ .Prompt }}</u>{{ end }}"
    "<a>{{ .Response }}</a>";
constexpr const char* kList =
    "{{- range $i, $m := .Messages }}{{ $last := eq (len (slice $.Messages $i)) 1 }}"
    "<{{ $m.Role }}>{{ $m.Content }}"
    "{{- range $m.ToolCalls }}{\"name\": \"{{ .Function.Name }}\", \"arguments\": "
    "{{ .Function.Arguments }}}{{ end }}</>"
    "{{- if and $last (ne $m.Role \"assistant\") }}<assistant>{{ end }}{{ end }}";

Message message(const char* role, const char* content, const char* extra = "") {
  return {.role = role, .content = content, .extra_json = extra};
}

std::string rendered(const char* source, const std::vector<Message>& chat,
                     const char* variables = "", const char* bos = "") {
  return ChatTemplate(source).render(chat, true, bos, "</s>", variables);
}

TEST(GoTemplateChat, APromptAndAResponseAreATurn) {
  EXPECT_EQ(rendered(kTurns, {message("user", "Hi")}), "<u>Hi</u><a>");
  EXPECT_EQ(rendered(kTurns, {message("system", "Be."), message("user", "Hi")}),
            "<s>Be.</s><u>Hi</u><a>");
  EXPECT_EQ(
      rendered(kTurns, {message("user", "1"), message("assistant", "2"), message("user", "3")}),
      "<u>1</u><a>2</a><u>3</u><a>");
  EXPECT_EQ(rendered(kTurns, {message("user", "1"), message("system", "S"), message("user", "2")}),
            "<u>1</u><a></a><s>S</s><u>2</u><a>");
  // An answer that goes on.
  EXPECT_EQ(rendered(kTurns, {message("user", "1"), message("assistant", "2")}), "<u>1</u><a>2");
}

TEST(GoTemplateChat, WhatFollowsTheResponseIsTheModels) {
  EXPECT_EQ(rendered("({{ if .Response }}[{{ .Response }}]{{ end }}!", {message("user", "a")}),
            "(");  // where it stands counts, not what is true
  EXPECT_EQ(rendered("{{ .Prompt }} {{ if true }}A:{{ .Response }}\n{{ end }}tail",
                     {message("user", "a")}),
            "a A:");
  EXPECT_EQ(rendered("Q: {{ .Prompt }}\n",
                     {message("user", "a"), message("assistant", "b"), message("user", "c")}),
            "Q: a\nbQ: c\n");  // a template without it ends with it
}

TEST(GoTemplateChat, MessagesAreAList) {
  EXPECT_EQ(rendered(kList, {message("system", "S"), message("user", "1"), message("user", "2")}),
            "<system>S</><user>1\n\n2</><assistant>");
  EXPECT_EQ(rendered("{{ .System }}|{{ range .Messages }}{{ .Role }} {{ end }}",
                     {message("system", "a"), message("user", "u"), message("system", "b")}),
            "a\n\nb|system user system ");
  EXPECT_EQ(rendered(kList, {message("user", "a"), message("assistant", "b")}),
            "<user>a</><assistant>b</>");
}

TEST(GoTemplateChat, CallsAndTools) {
  const char* call =
      R"({"content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"b":"<","a":1}}}]})";
  const char* as_text =
      R"({"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"b\":\"<\",\"a\":1}"}}]})";
  for (const char* one : {call, as_text}) {
    EXPECT_EQ(
        rendered(kList, {message("user", "a"), message("assistant", "", one), message("tool", "42"),
                         message("tool", "43")}),
        "<user>a</><assistant>{\"name\": \"f\", \"arguments\": {\"a\":1,\"b\":\"\\u003c\"}}</>"
        "<tool>42</><tool>43</><assistant>");
  }
  const char* tools = R"({"tools":[{"type":"function","function":{"name":"f","description":"d",
      "parameters":{"type":"object","required":["x"],"properties":{
          "x":{"type":"string","description":"p"},"n":{"type":["integer"]},
          "l":{"type":"array","items":{"type":"number"}}}}}}]})";
  EXPECT_EQ(
      rendered("{{ if .Tools }}{{ .Tools }}{{ end }}{{ range .Messages }}{{ end }}",
               {message("user", "a")}, tools),
      R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object",)"
      R"("required":["x"],"properties":{"l":{"type":"array","items":{"type":"number"}},"n":{"type":"integer"},)"
      R"("x":{"type":"string","description":"p"}}}}}])");
  EXPECT_EQ(
      rendered("{{ range .Messages }}{{ end }}{{ range .Tools }}{{ .Function.Name }}:"
               "{{ range $k, $v := .Function.Parameters.Properties }}{{ $k }} {{ $v.Type }} "
               "{{ toTypeScriptType $v }};{{ end }}{{ .Function.Parameters.Required }}{{ end }}",
               {message("user", "a")}, tools),
      "f:l array number[];n integer number;x string string;[x]");
  EXPECT_EQ(rendered("{{ range .Messages }}{{ end }}{{ range .Tools }}{{ json .Function.Name }}{{ "
                     ".Function }}{{ end }}",
                     {message("user", "a")},
                     R"({"tools":[{"type":"function","function":{"name":"g"}}]})"),
            R"("g"{"name":"g","description":"","parameters":{"type":"","properties":{}}})");
}

TEST(GoTemplateChat, Thinking) {
  const char* source =
      "{{ range .Messages }}{{ .Thinking }}{{ .ToolName }}{{ end }}{{ if .IsThinkSet }}{{ .Think "
      "}}{{ .ThinkLevel }}{{ end }}";
  EXPECT_EQ(rendered(source, {message("assistant", "a", R"({"reasoning_content":"r"})"),
                              message("tool", "b", R"({"name":"f"})")}),
            "rf");
  EXPECT_EQ(rendered(source, {message("user", "a")}, R"({"enable_thinking":false})"), "false");
  EXPECT_EQ(rendered(source, {message("user", "a")}, R"({"reasoning_effort":"low"})"), "truelow");
}

TEST(GoTemplateChat, TheTextAfterAGap) {
  // As models of Ollama's library that complete code have it.
  const char* source =
      "{{- if .Suffix }}<PRE> {{ .Prompt }} <SUF>{{ .Suffix }} <MID>"
      "{{- else }}{{ .System }}[INST] {{ .Prompt }} [/INST]{{ end }}";
  const char* suffix = R"({"suffix":"return x"})";
  EXPECT_EQ(rendered(source, {message("user", "def f():")}, suffix, "<s>"),
            "<s><PRE> def f(): <SUF>return x <MID>");
  EXPECT_EQ(rendered(source, {message("user", "Hi")}, R"({"suffix":""})"), "[INST] Hi [/INST]");
  EXPECT_EQ(rendered("{{ if .Suffix }}{{ .Prompt }}_{{ .Suffix }}{{ end }}"
                     "{{ range .Messages }}{{ .Content }}{{ end }}",
                     {message("system", "S"), message("user", "a")}, suffix),
            "a_return x");
  // With a gap the template is rendered to its end.
  EXPECT_EQ(rendered("{{ .Prompt }}{{ .Response }}{{ .Suffix }}", {message("user", "a")}, suffix),
            "areturn x");
}

TEST(GoTemplateChat, Pictures) {
  const char* source =
      "{{ range .Messages }}{{ if .Images }}{{ len .Images }}{{ range .Images }}!{{ end }}"
      "{{ end }}{{ .Content }}{{ end }}";
  EXPECT_EQ(rendered(source, {message("user", "[img-0][img-1]a", R"({"images":2})")}),
            "2!![img-0][img-1]a");
  EXPECT_EQ(rendered(source, {message("user", "a")}), "a");
}

TEST(GoTemplateChat, BosComesFirstOnce) {
  EXPECT_EQ(rendered(kTurns, {message("user", "Hi")}, "", "<b>"), "<b><u>Hi</u><a>");
  EXPECT_EQ(rendered("<b>{{ .Prompt }}", {message("user", "Hi")}, "", "<b>"), "<b>Hi");
}

TEST(GoTemplateChat, WhatIsNotKnownIsNamed) {
  const auto problem = [](const char* source) -> std::string {
    try {
      (void)ChatTemplate(source);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(problem("{{ .Sistem }}"), HasSubstr(".Sistem"));
  EXPECT_THAT(problem("{{ range .Messages }}{{ $.Sistem }}{{ end }}"), HasSubstr(".Sistem"));
  EXPECT_THAT(problem("\n{{ if .System }}{{ html .Prompt }}{{ end }}"),
              HasSubstr("line 2: function \"html\""));
  EXPECT_THAT(problem("{{ if .System }}{{ template \"x\" }}{{ end }}"), HasSubstr("\"x\""));
  EXPECT_EQ(problem("{{ range .Messages }}{{ .Anything }}{{ end }}"), "none");
  EXPECT_THROW(
      (void)rendered("{{ range .Messages }}{{ .Anything }}{{ end }}", {message("user", "a")}),
      Error);
}

TEST(GoTemplateChat, IsToldFromJinja) {
  for (const char* source :
       {"{{ .Prompt }}", "{{- .Prompt }}", "{{.Prompt}}", "x {{ if .System }}{{ end }}",
        "{{$x := 1}}", "{{- /* c */ -}}{{ .X }}", "{{ \"a\" }}{{ json .Tools }}",
        "{{ define \"x\" }}{{ end }}", "{{ ((.Prompt)) }}", "x{{ end }}", "{{- break -}}",
        "{{ not (eq .Prompt \"a\") }}"}) {
    EXPECT_TRUE(GoTemplate::is_one(source)) << source;
  }
  for (const char* source :
       {"", "text", "{{ messages }}", "{{ 'a' }}", "{{- bos_token }}", "{{ len }}",
        "{{ range(3) }}", "{% if a %}{{ end - 1 }}{% endif %}", "{{ index[0] }}", "{{ block }}",
        "{{ and }}", "{{ (a) }}", "{% set end = 1 %}{{ end }}", "{{ ending }}",
        "{{ not (a and b) }}", "{% set range = 5 %}{{ range }}", "{{ range }}"}) {
    EXPECT_FALSE(GoTemplate::is_one(source)) << source;
  }
  std::string deep = "{{ ";
  for (int i = 0; i < 100'000; ++i) deep += "not ((";
  EXPECT_FALSE(GoTemplate::is_one(deep));
  EXPECT_TRUE(GoTemplate::is_one(deep + ".Prompt"));
  const std::filesystem::path folder =
      std::filesystem::path(test::data_folder()) / "units/template/goldens/templates";
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_FALSE(ChatTemplate(read_file(entry.path().string())).is_go()) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 5U);
}

}  // namespace
}  // namespace rbee::text
