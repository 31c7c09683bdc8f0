// What a hostile template in Go's form may take.

#include <gmock/gmock.h>

#include <string>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/text/go_template/go_template.h"

namespace rbee::text {
namespace {

using ::testing::HasSubstr;

std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

std::string problem(const std::string& source, TemplateLimits limits = {},
                    const char* data = R"({"Prompt":"abcdefgh"})") {
  try {
    (void)GoTemplate(source, limits).render(data);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "none";
}

// Loops within loops, and a template that calls itself.
TEST(GoTemplateLimits, WorkIsBounded) {
  const TemplateLimits few{.max_steps = 50'000};
  std::string loops;
  for (int i = 0; i < 9; ++i) loops += "{{ range 99 }}";
  EXPECT_THAT(problem("{{ .Prompt }}" + loops + repeated("{{ end }}", 9), few), HasSubstr("steps"));
  EXPECT_THAT(problem("{{ range 9223372036854775807 }}{{ end }}", few), HasSubstr("steps"));
  const std::string once = "{{ template \"a\" }}";
  EXPECT_THAT(problem("{{ define \"a\" }}" + once + "{{ end }}" + once), HasSubstr("deep"));
  EXPECT_THAT(problem("{{ define \"a\" }}" + once + once + "{{ end }}" + once,
                      {.max_steps = 1000, .max_depth = 30}),
              ::testing::AnyOf(HasSubstr("deep"), HasSubstr("steps")));
}

TEST(GoTemplateLimits, OutputAndMemoryAreBounded) {
  EXPECT_THAT(problem("{{ range 1000 }}" + std::string(1000, 'x') + "{{ end }}",
                      {.max_output_bytes = 100'000}),
              HasSubstr("bytes"));
  const std::string doubles =
      "{{ $x := .Prompt }}{{ range 60 }}{{ $x = printf \"%s%s\" $x $x }}{{ end }}";
  EXPECT_THAT(problem(doubles, {.max_memory_bytes = 1 << 20}), HasSubstr("bytes"));
  EXPECT_THAT(problem(doubles, {.max_steps = 1'000'000'000}), HasSubstr("bytes"));
  const std::string json = "{{ $x := .Prompt }}{{ range 60 }}{{ $x = json $x }}{{ end }}";
  EXPECT_THAT(problem(json, {.max_memory_bytes = 1 << 20}), HasSubstr("bytes"));
}

TEST(GoTemplateLimits, NestingIsBounded) {
  EXPECT_THAT(problem(repeated("{{ if .Prompt }}", 200) + repeated("{{ end }}", 200)),
              HasSubstr("deep"));
  EXPECT_THAT(problem(repeated("{{ if .Prompt }}{{ else ", 1) +
                      repeated("if .Prompt }}{{ else ", 500) + "}}" + "{{ end }}"),
              HasSubstr("deep"));
  EXPECT_THAT(problem("{{ .Prompt }}{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}"),
              HasSubstr("deep"));
  EXPECT_EQ(problem(repeated("{{ if .Prompt }}", 30) + repeated("{{ end }}", 30)), "none");
}

TEST(GoTemplateLimits, SourceIsBounded) {
  EXPECT_THAT(problem("{{ .Prompt }}" + std::string(100, 'x'), {.max_source_bytes = 100}),
              HasSubstr("100"));
  std::string many = "{{ .Prompt }}";
  for (int i = 0; i < 2000; ++i) many += cat("{{ $x", i, " := 1 }}");
  EXPECT_THAT(problem(many), HasSubstr("variables"));
}

TEST(GoTemplateLimits, AnyBytesAreRead) {
  for (const char* source : {"{{", "{{-", "{{ .", "{{ $", "{{ \"\\", "{{ '", "{{ `", "{{ (", "{{/*",
                             "{{ .A.", "{{ 0x }}", "{{ + }}", "{{ \xff }}", "{{ 'x",
                             "{{ \"\\u12\" }}", "{{ 99999999999999999999 }}", "{{ 1e999 }}",
                             "{{ \"\\ud800\" }}", "{{ -9223372036854775809 }}"}) {
    EXPECT_NE(problem(cat("{{ .Prompt }}", source)), "none") << source;
  }
}

}  // namespace
}  // namespace rbee::text
