// JSON schemas: which texts their grammars hold, and what is refused. Whether what is written under
// a schema is valid says documents_test.cc.
#include "rbee/grammar/json_schema.h"

#include <gmock/gmock.h>

#include "rbee/core/cat.h"
#include "tests/support/expect_error.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

using testing::compile;
using ::testing::HasSubstr;
using testing::matches;

struct Case {
  const char* schema;
  std::vector<std::string> accepted;
  std::vector<std::string> rejected;
};

TEST(JsonSchema, TextsAreAcceptedOrNot) {
  const std::vector<Case> cases = {
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},
          "required":["a","b"],"additionalProperties":false})",
       {R"({"a":1,"b":"x"})", R"({ "a": -12, "b": "" })",
        "{\n  \"a\": 0,\n  \"b\": \"\\u00e9\"\n}"},
       {R"({"b":"x","a":1})", R"({"a":1})", R"({"a":1.5,"b":"x"})", R"({"a":1,"b":"x","c":1})",
        R"({"a":01,"b":""})", R"({"a":1,"b":"x"} )"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},
          "required":["b"]})",
       {R"({"b":2})", R"({"a":1,"b":2})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"},
       {R"({})", R"({"a":1})", R"({"b":2,})", R"({"c":3,"b":2})"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}}})",
       {"{}", "{ }", R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
       {R"({"a":1,"a":1})", "{,}"}},
      {R"({"type":"object","properties":{"ab":{"const":1}},"additionalProperties":{"const":2}})",
       {R"({"ab":1})", R"({"ab":1,"a":2,"abc":2,"":2})", R"({"x":2})"},
       {R"({"ab":2})", R"({"x":2,"ab":1})", R"({"\u0061b":2})", R"({"x":1})"}},
      {R"({"type":"object"})", {"{}", R"({"a":[1,{"b":null}]})"}, {"[]", "1"}},
      {R"({"required":["k"],"additionalProperties":{"type":"null"}})",
       {R"({"k":null,"z":null})"},
       {"{}", R"({"k":1})"}},
      {R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3})",
       {"[true]", "[true, false,true]"},
       {"[]", "[true,true,true,true]", "[1]"}},
      {R"({"type":"array","prefixItems":[{"const":1},{"const":"b"}]})",
       {R"([1,"b"])"},
       {"[1]", R"([1,"b",3])"}},
      {R"({"prefixItems":[{"const":1}],"items":{"const":2}})", {"[1]", "[1,2,2]"}, {"[]", "[1,1]"}},
      {R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"}},
      {R"({"enum":["a",1,null,{"x":[true]},"\u00e9\""]})",
       {R"("a")", "1", "null", R"({"x":[true]})", "\"\xC3\xA9\\\"\""},
       {R"("b")", "2"}},
      {R"({"type":"string","enum":["a",1]})", {R"("a")"}, {"1"}},
      {R"({"type":["string","null"],"maxLength":2})",
       {"null", R"("")", R"("\n")", "\"\xC3\xA9\xE2\x82\xAC\"", R"("\ud83d\ude42a")"},
       {R"("abc")", "1", R"("\ud83d")"}},
      {R"({"type":"string","pattern":"^[a\"\\\\]{2}$"})",
       {R"("a\"")", R"("\\a")"},
       {R"("a")", R"("a"")"}},
      {R"({"type":"string","pattern":"\\s"})", {R"(" ")", R"("\n")"}, {"\"\n\"", R"("a")"}},
      {R"({"type":"integer","minimum":-3,"exclusiveMaximum":12})",
       {"-3", "-1", "0", "9", "10", "11"},
       {"-4", "12", "20", "-0", "1.0", "007"}},
      {R"({"type":"integer","minimum":95,"maximum":1203})",
       {"95", "99", "100", "999", "1000", "1199", "1203"},
       {"94", "1204", "9", "2000", "10000"}},
      {R"({"type":"integer","minimum":1.5,"maximum":3.5})", {"2", "3"}, {"1", "4"}},
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0", "1", "0.25", "1.0", "0.0"},
       {"-0.1", "1.01", "2", "1e1"}},
      {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":2})",
       {"0.1", "1", "1.999"},
       {"0", "0.0", "2", "2.0", "-1"}},
      {R"({"type":"number","minimum":-2,"exclusiveMaximum":0})",
       {"-2", "-2.0", "-0.5", "-1.5"},
       {"0", "-0", "-0.0", "-2.1", "1"}},
      {R"({"type":"integer","multipleOf":7})",
       {"0", "7", "-7", "14", "700", "-105", "1000006"},
       {"1", "-0", "07", "8", "-15", "7.0", "1000005"}},
      {R"({"type":"integer","multipleOf":5,"minimum":0})",
       {"0", "5", "10", "12345"},
       {"-5", "4", "-0", "12346"}},
      {R"({"type":"integer","multipleOf":5,"exclusiveMaximum":0})",
       {"-5", "-10", "-2005"},
       {"0", "5", "-0", "-4"}},
      {R"({"type":"integer","multipleOf":100,"minimum":-100,"exclusiveMaximum":300})",
       {"-100", "0", "100", "200"},
       {"300", "-200", "50", "-0"}},
      {R"({"type":"integer","multipleOf":0.5})", {"0", "1", "-3"}, {"0.5", "1.5"}},
      {R"({"type":"integer","multipleOf":2.5,"minimum":0})", {"0", "5", "10"}, {"2", "2.5", "4"}},
      {R"({"multipleOf":0.01,"minimum":0})",
       {"0", "1", "0.01", "0.5", "12.34", "3.10"},
       {"0.001", "-1", "1.", "0.", "0.0", "01", "1e2"}},
      {R"({"type":"number","multipleOf":0.25})",
       {"0", "-0.25", "0.5", "0.50", "7.75", "-12"},
       {"0.1", "-0", "-0.0", "0.255", "1.2"}},
      {R"({"type":"number","multipleOf":0.25,"minimum":-1,"exclusiveMaximum":1})",
       {"-1", "-0.75", "-0.5", "0", "0.25", "0.75"},
       {"1", "-1.25", "0.1", "-0", "0.50"}},
      {R"({"type":"number","minimum":0.25,"maximum":0.75})",
       {"0.25", "0.250", "0.251", "0.3", "0.7", "0.74999", "0.75", "0.7500"},
       {"0", "0.2", "0.2499", "0.751", "0.8", "1", "-0.5", "0.2 "}},
      {R"({"type":"number","minimum":-1.5,"maximum":2.05})",
       {"-1.5", "-1.49", "-1", "-0.001", "0", "0.9", "1.999", "2", "2.0", "2.04", "2.05"},
       {"-1.51", "-2", "2.051", "2.1", "2.06", "3", "-0"}},
      {R"({"type":"number","exclusiveMinimum":0.5,"exclusiveMaximum":0.625})",
       {"0.51", "0.5001", "0.6", "0.62", "0.6249"},
       {"0.5", "0.50", "0.625", "0.6250", "0.63", "0.49", "0"}},
      {R"({"type":"number","exclusiveMinimum":-0.125,"maximum":-0.1})",
       {"-0.1", "-0.10", "-0.12", "-0.1249", "-0.101"},
       {"-0.125", "-0.13", "-0.09", "0", "-0"}},
      {R"({"type":"number","minimum":0.001})",
       {"0.001", "0.0010001", "0.01", "7", "12.5"},
       {"0", "0.0009", "0.000", "-1"}},
      {R"({"type":"number","exclusiveMaximum":1000.5})",
       {"1000.4999999", "1000", "999.9", "-4.25"},
       {"1000.5", "1000.4999999999999999", "1001"}},
      {R"({"type":"number","exclusiveMinimum":3.05,"maximum":3.5})",
       {"3.051", "3.0501", "3.06", "3.5", "3.1"},
       {"3.05", "3.050", "3", "3.04", "3.51"}},
      {R"({"type":"number","minimum":0.5,"maximum":0.5})", {"0.5", "0.50"}, {"0.51", "0", "0.4"}},
      {R"({"multipleOf":0.01,"minimum":0.01,"maximum":0.055})",
       {"0.01", "0.05"},
       {"0", "0.06", "0.055", "-0.01"}},
      {R"({"multipleOf":0.5,"exclusiveMinimum":-1.5,"exclusiveMaximum":0.75})",
       {"-1", "-0.5", "0", "0.5"},
       {"-1.5", "1", "0.75"}},
      {R"({"type":"number"})", {"0", "-1.5", "1e5", "2.5E-3"}, {"01", ".5", "1.", "+1", "NaN"}},
      {R"({"anyOf":[{"type":"null"},{"type":"object","properties":{"t":{"const":"a"}},
          "required":["t"]}]})",
       {"null", R"({"t":"a"})"},
       {"{}", "1"}},
      {R"({"type":"object","required":["id"],"anyOf":[{"properties":{"id":{"const":1}}},
          {"properties":{"id":{"const":2}}}]})",
       {R"({"id":1})", R"({"id":2})"},
       {R"({"id":3})", "{}"}},
      {R"({"allOf":[{"type":"object","properties":{"a":{"const":1}},"required":["a"]},
          {"$ref":"#/$defs/more"}],"$defs":{"more":{"properties":{"b":{"const":2}},
          "required":["b"]}}})",
       {R"({"a":1,"b":2})"},
       {R"({"a":1})"}},
      {R"({"allOf":[{"type":"number","minimum":3},{"type":"integer","maximum":5}]})",
       {"3", "5"},
       {"2", "6", "4.5"}},
      {R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{
          "next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}},"required":["next"]}}})",
       {R"({"next":null})", R"({"next":{"next":null}})"},
       {R"({"next":1})"}},
      {R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-28")"},
       {R"("2024-02-30")", R"("24-01-01")"}},
      {"true", {"1", "{}", R"([null,"x"])"}, {"", "tru"}},
      {"{}", {"1"}, {"]"}},
  };
  for (const Case& c : cases) {
    const auto grammar = compile(parse_json_schema(c.schema));
    for (const std::string& text : c.accepted) {
      EXPECT_TRUE(matches(grammar, text)) << c.schema << '\n' << text;
    }
    for (const std::string& text : c.rejected) {
      EXPECT_FALSE(matches(grammar, text)) << c.schema << '\n' << text;
    }
  }
}

// The message of the refusal, whose code is one of the two for bad schemas.
std::string refusal(const std::string& schema) {
  try {
    compile(parse_json_schema(schema));
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == Code::invalid_argument || error.code() == Code::unsupported);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(JsonSchema, WhatCannotBeHeldIsRefusedByName) {
  const auto expect = [](const char* schema, const char* place, const char* what) {
    EXPECT_THAT(refusal(schema), ::testing::AllOf(HasSubstr(place), HasSubstr(what))) << schema;
  };
  expect(R"({"properties":{"a":{"not":{"type":"null"}}}})", "#/properties/a", "not");
  expect(R"({"items":{"uniqueItems":true}})", "#/items", "uniqueItems");
  expect(R"({"patternProperties":{}})", "#", "patternProperties");
  expect(R"({"type":"integer","multipleOf":0})", "#", "above 0");
  expect(R"({"type":"integer","multipleOf":"3"})", "#", "must be a number");
  expect(R"({"type":"integer","multipleOf":997})", "#", "too many remainders");
  expect(R"({"type":"integer","multipleOf":3,"minimum":7})", "#", "other than 0");
  expect(R"({"type":"integer","multipleOf":3,"minimum":0,"maximum":1000000})", "#", "4096");
  expect(R"({"type":"integer","multipleOf":30,"minimum":1,"maximum":29})", "#", "no multiple");
  expect(R"({"type":"number","multipleOf":1e-9})", "#", "six places");
  expect(R"({"type":"string","format":"date","maxLength":10})", "#", "format beside");
  expect(R"({"allOf":[{"if":{}}]})", "#/allOf/0", "if");
  expect(R"({"type":"strin"})", "#", "strin");
  expect(R"({"type":[]})", "#", "type");
  expect(R"({"$ref":"http://x/y"})", "#", "begin with #");
  expect(R"({"$ref":"#/$defs/none"})", "#", "points to nothing");
  expect(R"({"$ref":"#/a~2"})", "#", "JSON pointer");
  expect(R"({"$ref":"#"})", "grammar", "no text fits");
  expect(R"({"allOf":[{"$ref":"#"}]})", "#", "lead to each other");
  expect(R"({"enum":[]})", "#", "enum");
  expect(R"({"type":"string","enum":[1]})", "#", "has the type");
  expect(R"({"enum":[1],"minimum":0})", "#", "minimum");
  expect(R"({"type":"string","pattern":"(a"})", "#/pattern", "expected )");
  expect(R"({"type":"string","pattern":"a","maxLength":3})", "#", "pattern beside");
  expect(R"({"type":"string","format":"color"})", "#", "color");
  expect(R"({"type":"string","minLength":3,"maxLength":2})", "#", "minLength is above");
  expect(R"({"type":"string","maxLength":-1})", "#", "maxLength");
  expect(R"({"type":"string","maxLength":90000})", "grammar", "too large");
  expect(R"({"type":"integer","minimum":3,"maximum":2})", "#", "no number");
  expect(R"({"type":"number","minimum":1e-20})", "#", "behind the point");
  expect(R"({"type":"number","exclusiveMinimum":123456789.12345678})", "#", "15 in all");
  expect(R"({"type":"integer","minimum":1e30})", "#", "16 digits");
  expect(R"({"properties":{},"required":["x"],"additionalProperties":false})", "#", "required");
  expect(R"({"allOf":[{"type":"null"},{"type":"string"}]})", "#/allOf/1", "no type");
  expect(R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", "#/allOf/1", "pattern");
  expect(R"({"anyOf":[]})", "#", "anyOf");
  expect(R"({"properties":{"a":false},"required":["a"]})", "#/properties/a", "false");
  expect("[]", "#", "object, true or false");
  expect("{", "json_schema", "near byte");
  expect("\"\xFF\"", "json_schema", "near byte");
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += R"({"items":)";
  expect((deep + "{}" + std::string(100, '}')).c_str(), "json_schema", "deep");
}

// n / 1000 as JSON has it, without zeros at the end.
std::string thousandths(int n) {
  std::string digits = std::to_string(std::abs(n));
  if (digits.size() < 4) digits.insert(0, 4 - digits.size(), '0');
  digits.insert(digits.size() - 3, ".");
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return (n < 0 ? "-" : "") + digits;
}

TEST(JsonSchema, NumbersOfFractionsLieWithinTheirBounds) {
  constexpr int kBounds[] = {-1250, -1000, -905, -50, 0, 5, 300, 305, 1000, 1450};
  for (const int low : kBounds) {
    for (const int high : kBounds) {
      for (const bool open : {false, true}) {
        if (low > high || (low == high && open)) continue;
        const std::string schema =
            cat(R"({"type":"number",)", open ? R"("exclusiveMinimum":)" : R"("minimum":)",
                thousandths(low), ",", open ? R"("exclusiveMaximum":)" : R"("maximum":)",
                thousandths(high), "}");
        const auto grammar = compile(parse_json_schema(schema));
        for (int n = -1300; n <= 1500; n += 5) {
          const bool within = open ? low < n && n < high : low <= n && n <= high;
          ASSERT_EQ(matches(grammar, thousandths(n)), within) << schema << ' ' << thousandths(n);
        }
      }
    }
  }
}

TEST(JsonSchema, ModeForAnyObject) {
  const auto grammar = compile(json_object_grammar());
  EXPECT_TRUE(matches(grammar, R"({"a": [1, -2.5e3, "x\"", {}, []], "b": {"c": null}})"));
  EXPECT_TRUE(matches(grammar, "{}"));
  EXPECT_FALSE(matches(grammar, "[]"));
  EXPECT_FALSE(matches(grammar, R"({"a":})"));
}

}  // namespace
}  // namespace rbee::grammar
