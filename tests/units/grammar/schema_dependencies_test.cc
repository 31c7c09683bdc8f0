// Properties that need others (JSON schema 2020-12, validation, 6.5.4).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/grammar/budget.h"
#include "rbee/grammar/json_schema.h"
#include "tests/units/grammar/text_cases.h"

namespace rbee::grammar {
namespace {

using testing::compile;
using testing::expect_schema_texts;
using ::testing::HasSubstr;
using testing::matches;
using testing::TextCase;

TEST(SchemaDependencies, PropertiesComeWithWhatTheyNeed) {
  const std::vector<TextCase> cases = {
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},
          "dependentRequired":{"c":["a"],"a":["b"]}})",
       {"{}", R"({"b":2})", R"({"a":1,"b":2})", R"({"a":1,"b":2,"c":3})"},
       {R"({"a":1})", R"({"c":3})", R"({"a":1,"c":3})", R"({"b":2,"c":3})"}},
      {R"({"type":"object","dependentRequired":{"a":["b","a"]}})",
       {"{}", R"({"b":0})", R"({"a":0,"b":0})"},
       {R"({"a":0})", R"({"c":0})"}},
      {R"({"properties":{"a":{"const":1}},"additionalProperties":{"const":2},
          "dependentRequired":{"a":["z"]}})",
       {"{}", R"({"a":1,"z":2})", R"({"z":2,"y":2})", R"({"y":2})"},
       {R"({"a":1})", R"({"a":1,"y":2})", R"({"a":1,"z":1})", R"({"z":2,"z":2})"}},
      // What cannot come also keeps away what needs it.
      {R"({"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},
          "additionalProperties":false,"dependentRequired":{"a":["b"],"b":["z"]}})",
       {"{}", R"({"c":3})"},
       {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"}},
      {R"({"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"required":["a"],
          "maxProperties":2,"dependentRequired":{"a":["b"]}})",
       {R"({"a":1,"b":2})"},
       {R"({"a":1})", R"({"a":1,"c":3})", R"({"a":1,"b":2,"c":3})"}},
      {R"({"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"allOf":[
          {"dependentRequired":{"a":["b"]}},{"dependencies":{"a":["c"],"b":{"required":["c"]}}}]})",
       {"{}", R"({"c":3})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"},
       {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})", R"({"a":1,"c":3})"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}},
          "not":{"dependentRequired":{"a":["b"]}}})",
       {R"({"a":1})"},
       {"{}", R"({"b":2})", R"({"a":1,"b":2})"}},
      {R"({"type":["object","string"],"maxLength":1,"dependentRequired":{"a":["b"]}})",
       {"{}", R"("x")", R"({"a":0,"b":0})"},
       {R"({"a":0})", R"("xx")"}},
  };
  expect_schema_texts(cases);
}

std::string pairs(int count, int distance) {
  std::string properties, needs;
  for (int i = 0; i < 2 * count; ++i) properties += cat(i == 0 ? "" : ",", "\"p", i, R"(":true)");
  for (int i = 0; i < count; ++i) {
    const int first = distance == 1 ? 2 * i : i;
    needs += cat(i == 0 ? "" : ",", "\"p", first, R"(":["p)", first + distance, R"("])");
  }
  return cat(R"({"type":"object","properties":{)", properties, R"(},"dependentRequired":{)", needs,
             "}}");
}

TEST(SchemaDependencies, CostGrowsWithTheirNumber) {
  const auto work = [](int count) {
    const Budget budget;
    const auto made = compile(parse_json_schema(pairs(count, 1)));
    EXPECT_TRUE(matches(made, R"({"p4":1,"p5":2})"));
    EXPECT_FALSE(matches(made, R"({"p4":1})"));
    return budget.spent().work;
  };
  EXPECT_LT(work(80), 3 * work(40));
}

TEST(SchemaDependencies, TooManyAtOnceAreRefused) {
  try {
    parse_json_schema(pairs(40, 40));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("dependentRequired"));
  }
}

}  // namespace
}  // namespace rbee::grammar
