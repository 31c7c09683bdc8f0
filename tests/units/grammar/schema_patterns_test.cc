// Patterns of JSON schema, which match any part of a string (2020-12, core, 6.4).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/grammar/json_schema.h"
#include "tests/units/grammar/text_cases.h"

namespace rbee::grammar {
namespace {

using testing::expect_schema_texts;
using testing::TextCase;

TEST(SchemaPatterns, MatchAnyPart) {
  std::string long_host = "\"a";
  for (int i = 0; i < 127; ++i) long_host += ".a";
  long_host += "\"";
  const std::vector<TextCase> cases = {
      {R"({"type":"string","pattern":"^https?://"})",
       {R"("https://www.debian.org")", R"("http://")"},
       {R"("see https://a")", R"("https:")"}},
      {R"({"type":"string","pattern":"\\S"})", {R"("a")", R"(" a b\n")"}, {R"("")", R"("  ")"}},
      {R"({"type":"string","pattern":"[a-z]"})", {R"("Ab")", R"("\"a1")"}, {R"("A1")", R"("")"}},
      {R"({"type":"string","pattern":"a\"$"})", {R"("a\"")", R"("ba\"")"}, {R"("a\"b")"}},
      {R"({"type":"string","pattern":"^a|b$"})", {R"("ax")", R"("xb")"}, {R"("xa")", R"("bx")"}},
      {R"({"type":"string","pattern":"[0-9]","maxLength":3})",
       {R"("a1b")", R"("1")"},
       {R"("abc")", R"("ab1c")"}},
      {R"({"patternProperties":{"[0-9]":{"const":1}},"additionalProperties":{"const":2}})",
       {R"({"a1b":1,"b":2})"},
       {R"({"a1b":2})", R"({"b":1})"}},
      // pydantic's pattern for a Decimal.
      {R"({"anyOf":[{"type":"number"},
          {"type":"string","pattern":"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"}]})",
       {"1.5", R"("1.50")", R"("-.5")", R"("007")"},
       {R"("")", R"("-")", R"("1.5x")", R"("+.")"}},
      // The same for at most 30 digits, 10 after the point; both alternatives have an end.
      {R"j({"type":"string","pattern":"^(?!^[-+.]*$)[+-]?0*(?:\\d{0,20}$|(?=[\\d.]{1,31}0*$)\\d{0,20}\\.\\d{0,10}0*$)"})j",
       {R"("1.5")", R"("-000.25000000000000")", R"("12345678901234567890.0123456789")"},
       {R"("1.00000000001")", R"("123456789012345678901")", R"("+")", R"("1.5.2")"}},
      // zod's pattern for host names.
      {R"j({"type":"string","pattern":"^(?=.{1,253}\\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\\.?$"})j",
       {R"("localhost")", R"("a-b.example.org.")"},
       {R"("-a")", R"("a..b")", cat("\"", std::string(64, 'a'), "\""), long_host}},
      {R"j({"pattern":"^(?=.{3})(?!ab)[a-c]+$|^(?!x)[xy]$"})j",
       {R"("aab")", R"("cab")", R"("y")"},
       {R"("abc")", R"("cc")", R"("x")", R"("xy")"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-29")", R"("2000-02-29")"},
       {R"("2023-02-29")", R"("1900-02-29")"}},
      {R"({"enum":["2024-02-29"],"format":"date"})", {R"("2024-02-29")"}, {R"("2023-02-28")"}},
  };
  expect_schema_texts(cases);
}

}  // namespace
}  // namespace rbee::grammar
