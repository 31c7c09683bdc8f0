// Numbers of schemas come out as they are, or are refused.
#include <gmock/gmock.h>

#include <string>

#include "rbee/core/error.h"
#include "rbee/grammar/json_schema.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const char* schema) {
  try {
    testing::compile(parse_json_schema(schema));
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(SchemaReader, IntegersOfValuesStayWhole) {
  const auto grammar = testing::compile(parse_json_schema(
      R"({"enum":[18446744073709551615,-9223372036854775808,9007199254740993,1.10]})"));
  for (const char* text :
       {"18446744073709551615", "-9223372036854775808", "9007199254740993", "1.1"}) {
    EXPECT_TRUE(testing::matches(grammar, text)) << text;
  }
  EXPECT_FALSE(testing::matches(grammar, "9007199254740992"));
  for (const char* schema :
       {R"({"const":18446744073709551616})", R"({"enum":[[{"a":-9223372036854775809}]]})",
        R"({"properties":{"x":{"const":12345678901234567890123}}})"}) {
    EXPECT_THAT(refusal_of(schema), HasSubstr("beyond 64 bits")) << schema;
  }
  EXPECT_THAT(refusal_of(R"({"const":1e400})"), HasSubstr("out of range near byte"));
}

TEST(SchemaReader, BoundsThatNoDoubleTellsApartAreRefused) {
  for (const char* schema : {R"({"type":"integer","minimum":9007199254740993})",
                             R"({"type":"integer","exclusiveMaximum":-9007199254740994})"}) {
    EXPECT_THAT(refusal_of(schema), HasSubstr("between 2^53 and 10^16")) << schema;
  }
  // As many libraries write them.
  const auto grammar = testing::compile(parse_json_schema(
      R"({"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615})"));
  EXPECT_TRUE(testing::matches(grammar, "9007199254740993"));
  const auto safe = testing::compile(parse_json_schema(
      R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991})"));
  EXPECT_TRUE(testing::matches(safe, "9007199254740991"));
  EXPECT_FALSE(testing::matches(safe, "9007199254740992"));
}

}  // namespace
}  // namespace rbee::grammar
