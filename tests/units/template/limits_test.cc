// Models come with strangers' templates: each of these must fail soon.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/text/template/chat_template.h"

namespace rbee::text {
namespace {

using testing::HasSubstr;

std::string repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

std::string error_of(std::string_view source, TemplateLimits limits = {},
                     std::string_view variables = "{}") {
  try {
    const std::string out = ChatTemplate(source, limits).render(variables);
    ADD_FAILURE() << "no error, " << out.size() << " bytes";
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

constexpr std::string_view kThousand = "{% for i in range(1000) %}";

TEST(TemplateLimits, Steps) {
  const std::string loops =
      cat(kThousand, kThousand, kThousand, "{% set x = i %}", repeat("{% endfor %}", 3));
  EXPECT_THAT(error_of(loops), HasSubstr("line 1: the template needs more than 2000000 steps"));
  EXPECT_THAT(error_of("{% for i in range(9) %}{% endfor %}", {.max_steps = 10}),
              HasSubstr("more than 10 steps"));
}

// Arithmetic beyond 64 bits and impossible sizes must end in a template error.
TEST(TemplateLimits, HugeNumbers) {
  for (const std::string_view use : {"9223372036854775807 + 1",
                                     "-9223372036854775807 - 2",
                                     "9223372036854775807 * 2",
                                     "2 ** 63",
                                     "2 ** 9223372036854775807",
                                     "18446744073709551616 + 1",
                                     "1 - 18446744073709551616",
                                     "18446744073709551616 * 18446744073709551616",
                                     "18446744073709551616 // 3",
                                     "18446744073709551616 % 3",
                                     "2 ** 18446744073709551616",
                                     "18446744073709551616 is odd",
                                     "(-9223372036854775808) // -1",
                                     "-9223372036854775808 | abs + 9223372036854775808",
                                     "[1, 2] | batch(9223372036854775807, 1) | list",
                                     "[1, 2] | batch(18446744073709551616, 1) | list",
                                     "[1] | batch(99999999, 1) | list",
                                     "[1, 2] | slice(9223372036854775807, 1) | list",
                                     "range(9223372036854775807) | list",
                                     "range(0, 18446744073709551616)",
                                     "range(0, 9223372036854775807, 2) | list",
                                     "'a' * 18446744073709551616",
                                     "[1] * 9223372036854775807",
                                     "18446744073709551616 * 'a'",
                                     "'a'.center(18446744073709551616)",
                                     "'a' | indent(9223372036854775807, true)",
                                     "'a'.zfill(9223372036854775807)",
                                     "'a'.rjust(9223372036854775807, 'b')",
                                     "'%*d' % (9223372036854775807, 1)",
                                     "'{:9999999999}'.format(1)",
                                     "'%.*f' % (9223372036854775807, 1.5)",
                                     "[1] | tojson(indent=9223372036854775807)",
                                     "1 | round(-400, 'floor')",
                                     "18446744073709551616 | round(-2)",
                                     "'%x' % 18446744073709551616",
                                     "9223372036854775807 | round(-1)",
                                     "'a' | truncate(-9223372036854775808)",
                                     "'\\t'.expandtabs(9223372036854775807)"}) {
    SCOPED_TRACE(use);
    const TemplateLimits limits = {.max_steps = 200'000, .max_memory_bytes = 1 << 24};
    EXPECT_NE(error_of(cat("{{ ", use, " }}"), limits), "");
  }
}

TEST(TemplateLimits, HugeNumbersThatCutNothing) {
  for (const auto& [use, wanted] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"'abc'[:18446744073709551616]", "abc"},
           {"'abc'[-18446744073709551616:]", "abc"},
           {"'abc'[::18446744073709551616]", "a"},
           {"[1, 2][9223372036854775807] is undefined", "True"},
           {"[1, 2][18446744073709551616] is undefined", "True"},
           {"[1, 2][-9223372036854775808:9223372036854775807]", "[1, 2]"},
           {"[1, 2] | batch(9223372036854775807) | list", "[[1, 2]]"},
           {"'abc'.replace('b', 'x', 9223372036854775807)", "axc"},
           {"'a b'.split(' ', 9223372036854775807)", "['a', 'b']"},
           {"range(-9223372036854775807, 9223372036854775807, 4611686018427387904) | list | length",
            "4"},
           {"'abc' | truncate(9223372036854775807)", "abc"},
           {"'abc' | wordwrap(9223372036854775807)", "abc"},
           {"1.5 | round(9223372036854775807)", "1.5"},
           {"range(3)[9223372036854775807:] | list", "[]"}}) {
    EXPECT_EQ(ChatTemplate(cat("{{ ", use, " }}")).render("{}"), wanted) << use;
  }
}

// Work inside one operation counts, too.
TEST(TemplateLimits, StepsOfLongTexts) {
  const std::string head = "{% set s = 'ab' * 1000000 %}";
  for (const std::string_view use :
       {"s.count('b')", "'c' in s", "s == s ~ ''", "s | replace('c', 'd') | length", "s.rfind('x')",
        "s | wordcount", "s.split('c') | length", "s.isalpha()", "s | tojson | length", "{s: 1}[s]",
        "s is sameas s", "s % ()", "s.format()", "s < s ~ 'a'"}) {
    const std::string source = cat(head, kThousand, "{{ ", use, " }}{% endfor %}");
    SCOPED_TRACE(use);
    EXPECT_THAT(error_of(source, {.max_steps = 300'000}), HasSubstr("more than 300000 steps"));
  }
}

TEST(TemplateLimits, Output) {
  EXPECT_THAT(error_of(cat(kThousand, "0123456789{% endfor %}"), {.max_output_bytes = 5000}),
              HasSubstr("writes more than 5000 bytes"));
}

TEST(TemplateLimits, Memory) {
  for (const std::string_view use :
       {"'a' * 999999999999", "'a' * 9223372036854775807", "[1] * 999999999999",
        "'a'.center(999999999999)", "'a'.ljust(9223372036854775807)", "'%999999999d' % 1",
        "'{:999999999}'.format(1)", "'a' | indent(999999999999)", "'1'.zfill(999999999999)",
        "[1] | batch(999999999999, 'x') | list", "[1] | slice(999999999999) | list",
        "[[1]] | tojson(indent=999999999999)", "'%.999999999d' % 1",
        "'\\t'.expandtabs(99999999999)", "'ab'.replace('', 'x' * 99999999)",
        "'\u00e9'.rjust(99999999999, '\U0001f642')"}) {
    SCOPED_TRACE(use);
    const TemplateLimits limits = {.max_steps = 200'000, .max_memory_bytes = 1 << 24};
    EXPECT_FALSE(error_of(cat("{{ ", use, " }}"), limits).empty());
  }
  const std::string doubling = "{% set ns = namespace(s='x') %}" + std::string(kThousand) +
                               "{% set ns.s = ns.s ~ ns.s %}{% endfor %}";
  EXPECT_THAT(error_of(doubling, {.max_steps = 1LL << 40}), HasSubstr("268435456 bytes"));
  EXPECT_THAT(
      error_of("{{ m }}", {.max_memory_bytes = 1000}, cat("{\"m\": \"", repeat("x", 2000), "\"}")),
      HasSubstr("more than 1000 bytes"));
}

// An error may quote only part of the template.
TEST(TemplateLimits, LengthOfErrors) {
  EXPECT_LT(error_of(cat("{{ ", repeat("\u00e4", 5000), ".x }}")).size(), 1100U);
  EXPECT_LT(error_of("x", {}, cat("{\"a\": \"", repeat("b", 5000), "\xff\"}")).size(), 600U);
}

TEST(TemplateLimits, SourceSize) {
  EXPECT_THAT(error_of(repeat("x", 101), {.max_source_bytes = 100}), HasSubstr("101 bytes"));
  EXPECT_EQ(ChatTemplate(repeat("x", 100), {.max_source_bytes = 100}).render("{}").size(), 100U);
}

TEST(TemplateLimits, DepthOfSource) {
  for (const auto& [open, close] :
       std::vector<std::pair<std::string, std::string>>{{"(", ")"},
                                                        {"[", "]"},
                                                        {"{1:", "}"},
                                                        {"not ", ""},
                                                        {"-", ""},
                                                        {"x[", "]"},
                                                        {"f(", ")"},
                                                        {"1 if 1 else ", ""},
                                                        {"x|f(", ")"}}) {
    SCOPED_TRACE(open);
    EXPECT_THAT(error_of(cat("{{ ", repeat(open, 20000), "1", repeat(close, 20000), " }}")),
                HasSubstr("nested more than 100 deep"));
  }
  EXPECT_THAT(error_of(repeat("{% if 1 %}", 20000)), HasSubstr("nested more than 100 deep"));
  const std::string fine = cat("{{ ", repeat("(", 90), "1", repeat(")", 90), " }}");
  EXPECT_EQ(ChatTemplate(fine).render("{}"), "1");
}

// Chains are not nested, but their evaluation is.
TEST(TemplateLimits, LongChains) {
  for (const std::string_view link : {" + 1", "|string", ".x", "[0]", " or 0", " and 1"}) {
    SCOPED_TRACE(link);
    EXPECT_THAT(error_of(cat("{{ 1", repeat(link, 20000), " }}")), HasSubstr("too deeply"));
  }
  EXPECT_EQ(ChatTemplate(cat("{{ 1", repeat(" + 1", 500), " }}")).render("{}"), "501");
  EXPECT_EQ(ChatTemplate(cat("{{ 1", repeat(" ~ 1", 5000), " }}")).render("{}").size(), 5001U);
}

TEST(TemplateLimits, DepthOfCallsAndValues) {
  EXPECT_THAT(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("calls itself too deeply"));
  EXPECT_THAT(error_of("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("too deeply"));
  const std::string nest =
      "{% set ns = namespace(v=[]) %}{% for i in range(9000) %}"
      "{% set ns.v = [ns.v] %}{% endfor %}";
  for (const std::string_view use :
       {"{{ ns.v }}", "{{ ns.v | tojson }}", "{{ ns.v == [ns.v] }}", "{{ ns.v < [ns.v] }}"}) {
    SCOPED_TRACE(use);
    EXPECT_THAT(error_of(cat(nest, use)), HasSubstr("too deeply"));
  }
  EXPECT_THAT(error_of("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"),
              HasSubstr("too deeply"));
}

TEST(TemplateLimits, DepthOfVariables) {
  EXPECT_THAT(error_of("x", {}, cat("{\"a\": ", repeat("[", 5000), repeat("]", 5000), "}")),
              HasSubstr("nested more than 100 deep"));
}

// A value that contains itself twice is small, but its text is not.
TEST(TemplateLimits, SharedValues) {
  const std::string nest =
      "{% set ns = namespace(v=[1]) %}{% for i in range(60) %}"
      "{% set ns.v = [ns.v, ns.v] %}{% endfor %}";
  EXPECT_THAT(error_of(nest + "{{ ns.v }}"), HasSubstr("steps"));
  EXPECT_THAT(error_of(nest + "{{ ns.v == ns.v[:] }}"), HasSubstr("steps"));
}

}  // namespace
}  // namespace rbee::text
