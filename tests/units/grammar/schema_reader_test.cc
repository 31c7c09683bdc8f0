// Numbers in schemas are read exactly, or refused.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "rbee/core/cat.h"
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
  EXPECT_THAT(refusal_of(R"({"const":1e400})"), HasSubstr("column 10: the number 1e400 is beyond"));
}

TEST(SchemaReader, NumbersOfValuesThatAreToBeRoundedKeepTheirTexts) {
  for (const auto& [schema, text] : std::vector<std::pair<const char*, const char*>>{
           {R"({"const":18446744073709551616})", "18446744073709551616"},
           {R"({"const":100000000000000000000})", "100000000000000000000"},
           {R"({"enum":[[{"a":-9223372036854775809}]]})", R"([{"a":-9223372036854775809}])"},
           {R"({"const":0.12345678901234567890123})", "0.12345678901234567890123"},
           {R"({"const":-1.00000000000000000001})", "-1.00000000000000000001"},
           {R"({"const":1e-400})", "1e-400"},
           {R"({"const":1.50})", "1.5"}}) {
    const auto grammar = testing::compile(parse_json_schema(schema));
    EXPECT_TRUE(testing::matches(grammar, text)) << schema;
    for (const char* other : {"18446744073709551617", "1.8446744073709552e+19", "0", "-1", "0.0",
                              "0.12345678901234568", "1e+20"}) {
      EXPECT_FALSE(testing::matches(grammar, other)) << schema << ' ' << other;
    }
  }
  EXPECT_EQ(
      refusal_of(R"({"properties":{"const":{"type":"integer","minimum":18446744073709551616}}})"),
      "nothing was thrown");
}

struct Numbers {
  const char* schema;
  std::vector<const char*> accepted, rejected;
};

void expect_numbers(const std::vector<Numbers>& cases) {
  for (const Numbers& c : cases) {
    const auto grammar = testing::compile(parse_json_schema(c.schema));
    for (const char* text : c.accepted) {
      EXPECT_TRUE(testing::matches(grammar, text)) << c.schema << ' ' << text;
    }
    for (const char* text : c.rejected) {
      EXPECT_FALSE(testing::matches(grammar, text)) << c.schema << ' ' << text;
    }
  }
}

TEST(SchemaReader, IntegersAreExactBeyondWhatDoublesHold) {
  expect_numbers({
      {R"({"type":"integer"})",
       {"18446744073709551615", "-9223372036854775808", "99999999999999999999", "0"},
       {"100000000000000000000", "-0", "1.0"}},
      {R"({"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615})",
       {"9007199254740993", "18446744073709551615", "-9223372036854775808", "123456789012345678"},
       {"18446744073709551616", "-9223372036854775809", "99999999999999999999"}},
      {R"({"type":"integer","minimum":9007199254740993,"exclusiveMaximum":9007199254740996})",
       {"9007199254740993", "9007199254740995"},
       {"9007199254740992", "9007199254740996"}},
      {R"({"type":"integer","exclusiveMaximum":-9007199254740994})",
       {"-9007199254740995", "-12345678901234567890"},
       {"-9007199254740994", "0"}},
      {R"({"allOf":[{"type":"integer","minimum":9007199254740992},{"minimum":9007199254740993}]})",
       {"9007199254740993"},
       {"9007199254740992"}},
      {R"({"enum":[9007199254740993,9007199254740992],"maximum":9007199254740992})",
       {"9007199254740992"},
       {"9007199254740993"}},
      // Bounds of 128 bits allow every number that fits.
      {R"({"type":"integer","minimum":0,"maximum":340282366920938463463374607431768211455})",
       {"99999999999999999999", "0"},
       {"-1"}},
      {R"({"type":"integer","minimum":-0.5,"exclusiveMaximum":3})", {"0", "2"}, {"-1", "3"}},
      {R"({"type":"integer","multipleOf":5,"minimum":4.5,"exclusiveMaximum":20})",
       {"5", "15"},
       {"0", "20"}},
  });
  EXPECT_THAT(refusal_of(R"({"type":"integer","maximum":-1e21})"), HasSubstr("20 digits"));
  EXPECT_THAT(refusal_of(R"({"type":"integer","exclusiveMinimum":18446744073709551615,
                             "maximum":18446744073709551615})"),
              HasSubstr("no number"));
}

TEST(SchemaReader, SuchNumbersAreComparedWithAllDigits) {
  expect_numbers({
      {R"({"enum":[18446744073709551616,18446744073709551617],"maximum":18446744073709551616})",
       {"18446744073709551616"},
       {"18446744073709551617"}},
      {R"({"enum":[0.1234567890123456789,2],"exclusiveMinimum":0.12345678901234567})",
       {"0.1234567890123456789", "2"},
       {}},
      {R"({"enum":[0.12345678901234567,0.1234567890123456701],"maximum":0.12345678901234567})",
       {"0.12345678901234567"},
       {"0.1234567890123456701"}},
      {R"({"enum":[99999999999999999999,99999999999999999998],"multipleOf":3})",
       {"99999999999999999999"},
       {"99999999999999999998"}},
      {R"({"enum":[99999999999999999999,0.10000000000000000001],"type":"integer"})",
       {"99999999999999999999"},
       {"0.10000000000000000001"}},
      {R"({"allOf":[{"enum":[100000000000000000000,7]},{"enum":[1e20,8]}]})",
       {"100000000000000000000"},
       {"7", "8"}},
      {R"({"enum":[18446744073709551616,5],"not":{"const":18446744073709551616}})",
       {"5"},
       {"18446744073709551616"}},
      {R"({"type":"integer","not":{"const":99999999999999999999}})",
       {"999999999999999"},
       {"99999999999999999999"}},
      {R"({"type":"array","items":{"enum":[18446744073709551616,2]},"uniqueItems":true})",
       {"[18446744073709551616,2]", "[2]"},
       {"[18446744073709551616,18446744073709551616]"}},
  });
}

TEST(SchemaReader, HundredsOfNumbersWithBoundsOfTheirOwnAreOneGrammar) {
  const std::string head = R"({"type":"array","prefixItems":[)";
  std::string integers = head, decimals = head, lowest = "[", below = "[", parts = "[";
  for (int64_t i = 0; i < 600; ++i) {
    const char* comma = i == 0 ? "" : ",";
    const int64_t low = 123456789012345 + i * 7919, high = 987654321098765 - i * 104729;
    integers += cat(comma, R"({"type":"integer","minimum":-)", low, R"(,"maximum":)", high, "}");
    lowest += cat(comma, "-", low);
    below += cat(comma, "-", i == 300 ? low + 1 : low);
    decimals += cat(comma, R"({"type":"number","minimum":-)", low / 10'000'000, ".", 100 + i,
                    R"(,"exclusiveMaximum":)", high / 10'000'000, "}");
    parts += cat(comma, "-", low / 10'000'000, ".", 100 + i);
  }
  const auto whole = testing::compile(parse_json_schema(integers + "]}"));
  EXPECT_TRUE(testing::matches(whole, lowest + "]"));
  EXPECT_FALSE(testing::matches(whole, below + "]"));
  const auto broken = testing::compile(parse_json_schema(decimals + "]}"));
  EXPECT_TRUE(testing::matches(broken, parts + "]"));
  EXPECT_FALSE(testing::matches(broken, lowest + "]"));
}

TEST(SchemaReader, NumbersHaveAllDigitsOfADouble) {
  expect_numbers({
      {R"({"type":"number"})",
       {"0.30000000000000004", "12345678901234567890.5", "6.02214076e23", "0.00012345678901234567"},
       {"123456789012345678901", "0.123456789012345678901"}},
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0.30000000000000004", "1", "1.0"},
       {"1.00000000000000000001", "-0.1"}},
      {R"({"type":"number","exclusiveMaximum":1})",
       {"0.99999999999999", "-1.25"},
       {"0.99999999999999999999", "1"}},
  });
}

TEST(SchemaReader, BoundsThatNoDoubleTellsApartAreRefusedOfNumbers) {
  for (const char* schema : {R"({"type":"number","minimum":9007199254740993})",
                             R"({"type":"number","exclusiveMaximum":-9007199254740994})"}) {
    EXPECT_THAT(refusal_of(schema), HasSubstr("between 2^53 and 10^16")) << schema;
  }
}

}  // namespace
}  // namespace rbee::grammar
