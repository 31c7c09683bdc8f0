// Cases that goldens cannot show: errors' texts and places, messages, time, threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/text/template/chat_template.h"

namespace rbee::text {
namespace {

using testing::HasSubstr;

std::string render(std::string_view source, std::string_view variables = "{}") {
  return ChatTemplate(source).render(variables);
}

// The message of the error that parsing and rendering `source` throws.
std::string error_of(std::string_view source, std::string_view variables = "{}",
                     Code code = Code::invalid_argument) {
  try {
    render(source, variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.op(), "chat template");
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(TemplateErrors, SourceErrorsHaveLineAndColumn) {
  EXPECT_EQ(error_of("a\nbc {{ 1 + }}"),
            "chat template: line 2, column 11: unexpected '}}', expected an expression");
  EXPECT_THAT(error_of("x\n\n{% if a %}"), HasSubstr("line 3, column 11: the template ends"));
  EXPECT_THAT(error_of("\u00e9 {{ @ }}"), HasSubstr("line 1, column 6: unexpected character '@'"));
  EXPECT_THAT(error_of("\n{# open"), HasSubstr("line 2, column 1: the comment has no end"));
  EXPECT_THAT(error_of("{% frob %}"), HasSubstr("line 1, column 4: unknown tag 'frob'"));
  EXPECT_THAT(error_of("{{ 0xffffffffffffffffff }}"), HasSubstr("does not fit into 64 bits"));
  EXPECT_THAT(error_of(cat("{{ ", std::string(4301, '1'), " }}")),
              HasSubstr("more than 4300 digits"));
}

// The output of Python's json and Jinja2 for them.
TEST(TemplateNumbers, IntegersOfAnySizeArePassedOn) {
  for (const char* number : {"9223372036854775807", "-9223372036854775808", "9223372036854775808",
                             "-9223372036854775809", "18446744073709551615", "18446744073709551616",
                             "-340282366920938463463374607431768211456"}) {
    const std::string json = cat("{\"a\": ", number, ", \"t\": \"", number, "\"}");
    for (const char* source :
         {"{{ a }}", "{{ a | tojson }}", "{{ a | string }}", "{{ '%d' % a }}",
          "{{ '{}'.format(a) }}", "{{ '{:d}'.format(a) }}", "{{ t | int }}", "{{ - -a }}",
          "{{ [a][0] }}", "{{ {a: a}[a] }}", "{{ a | round }}"}) {
      EXPECT_EQ(render(source, json), number) << source;
    }
    EXPECT_EQ(render(cat("{{ ", number, " == a and a == ", number, " and a == t | int }}"), json),
              "True");
    EXPECT_EQ(
        render("{{ a is integer and a is number and a is not float and a is not string }}", json),
        "True");
  }
  EXPECT_EQ(render("{{ 1e30 | int }} {{ -1e19 | int }}"),
            "1000000000000000019884624838656 -10000000000000000000");
  EXPECT_EQ(render("{{ -18446744073709551616 | abs }} {{ '{:,}'.format(18446744073709551616) }}"),
            "18446744073709551616 18,446,744,073,709,551,616");
  EXPECT_EQ(render("{{ 18446744073709551616 * 1.0 }} {{ 18446744073709551616 / 2 }}"),
            "1.8446744073709552e+19 9.223372036854776e+18");
}

TEST(TemplateNumbers, IntegersOfAnySizeHaveAnOrder) {
  EXPECT_EQ(render("{{ [b, 1e19, 5, c, -1e300, -b, d] | sort }}",
                   R"({"b": 18446744073709551616, "c": 18446744073709551617,
                       "d": 99999999999999999999})"),
            "[-1e+300, -18446744073709551616, 5, 1e+19, 18446744073709551616, 18446744073709551617,"
            " 99999999999999999999]");
  EXPECT_EQ(render("{{ 18446744073709551616 == 18446744073709551616.0 }}"
                   "{{ 18446744073709551617 == 18446744073709551616.0 }}"
                   "{{ 18446744073709551617 < 1e999 }}{{ {18446744073709551617: 1}[1e19] }}"),
            "TrueFalseTrue");
}

TEST(TemplateNumbers, FloatsAreWrittenAsPythonDoes) {
  EXPECT_EQ(render("{{ a }} {{ a | tojson }}", R"({"a": [1.10, 1E5, -0, -0.0, 1e16, 1e-5, 0.1]})"),
            "[1.1, 100000.0, 0, -0.0, 1e+16, 1e-05, 0.1] "
            "[1.1, 100000.0, 0, -0.0, 1e+16, 1e-05, 0.1]");
}

TEST(TemplateErrors, RenderErrorsHaveTheLine) {
  EXPECT_EQ(error_of("a\nb\n{{ x.y }}"), "chat template: line 3: 'x' is undefined");
  EXPECT_EQ(error_of("{{ m.a.b }}", R"({"m": {}})"),
            "chat template: line 1: 'dict object' has no attribute 'a'");
  EXPECT_EQ(error_of("\n{{ 1 | nope }}"), "chat template: line 2: no filter is named 'nope'");
  EXPECT_THAT(error_of("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n\n{{ m() }}"),
              HasSubstr("line 2: division by zero"));
  EXPECT_THAT(error_of("{% macro m() %}\n{% endmacro %}\n\n{{ m() + 1 }}"), HasSubstr("line 4"));
  EXPECT_THAT(error_of("{{ 'a'.find() }}"), HasSubstr("find() needs the argument 'sub'"));
}

TEST(TemplateErrors, RaisedTextIsUnchanged) {
  EXPECT_EQ(error_of("\n{{ raise_exception('Roles must alternate: ' ~ 1) }}"),
            "chat template: Roles must alternate: 1");
}

TEST(TemplateErrors, FilesAreOutOfReach) {
  for (const std::string_view tag : {"include", "import", "from", "extends"}) {
    const std::string source = "{% " + std::string(tag) + " 'x' %}";
    EXPECT_THAT(error_of(source, "{}", Code::unsupported), HasSubstr(std::string(tag)));
  }
}

TEST(TemplateErrors, VariablesMustBeAnObject) {
  EXPECT_THAT(error_of("x", "[1]"), HasSubstr("the variables must be a JSON object"));
  EXPECT_THAT(error_of("x", "{\"a\": }"),
              HasSubstr("the variables: line 1, column 7: expected a value"));
  EXPECT_THAT(error_of("x", "{\"a\": \"\xff\"}"), HasSubstr("column 8: the byte 0xff"));
  EXPECT_THAT(error_of("x", "{\"a\": 1e400}"), HasSubstr("the number 1e400 is beyond"));
  EXPECT_THAT(error_of("\xc3("), HasSubstr("line 1, column 1: invalid UTF-8"));
}

TEST(TemplateMessages, AreVariables) {
  const ChatTemplate chat(
      "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m['content'] }}{{ m.name }};"
      "{% endfor %}{{ eos_token }}{% if add_generation_prompt %}!{% endif %}{{ extra }}");
  const std::vector<Message> messages = {{"user", "H\u00e9", {}},
                                         {"tool", "1", R"({"name": "f"})"}};
  EXPECT_EQ(chat.render(messages, true, "<s>", "</s>", R"({"extra": 7})"),
            "<s>user:H\u00e9;tool:1f;</s>!7");
  EXPECT_EQ(chat.render(messages, false, "", ""), "user:H\u00e9;tool:1f;");
}

TEST(TemplateMessages, KeepTheOrderOfFields) {
  const ChatTemplate chat("{{ messages[0].tool_calls | tojson }}");
  const std::vector<Message> messages = {
      {"assistant", "", R"({"tool_calls": [{"z": 1, "a": {"y": null, "b": 2.50}}]})"}};
  EXPECT_EQ(chat.render(messages, false, "", ""), R"([{"z": 1, "a": {"y": null, "b": 2.5}}])");
}

TEST(TemplateMessages, MustBeUtf8) {
  const ChatTemplate chat("{{ messages }}");
  const std::vector<Message> messages = {{"user", "\xff", {}}};
  EXPECT_THROW(chat.render(messages, false, "", ""), Error);
}

TEST(TemplateFunctions, StrftimeNowIsLocalTime) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char year[8];
  ASSERT_GT(std::strftime(year, sizeof year, "%Y", &local), 0U);
  EXPECT_EQ(render("{{ strftime_now('%Y') }}"), year);
  EXPECT_THAT(error_of("{{ strftime_now('%Y' * 3000) }}"), HasSubstr("4096"));
}

TEST(TemplateFunctions, VariablesHideGlobals) {
  EXPECT_EQ(render("{{ range }}", R"({"range": 3})"), "3");
}

TEST(ChatTemplate, IsSharedByThreads) {
  const ChatTemplate chat(
      "{% set ns = namespace(t='') %}{% for i in range(n) %}"
      "{% set ns.t = ns.t ~ i %}{% endfor %}{{ ns.t | length }}");
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (std::string& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) result = chat.render(R"({"n": 100})");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) EXPECT_EQ(result, "190");
}

TEST(ChatTemplate, CanBeMoved) {
  ChatTemplate first("{{ 'a' }}{{ x }}");
  ChatTemplate second(std::move(first));
  first = ChatTemplate("b");
  EXPECT_EQ(second.render(R"({"x": 1})"), "a1");
  EXPECT_EQ(first.render("{}"), "b");
}

}  // namespace
}  // namespace rbee::text
