// JSON schemas: the texts that their grammars accept, and refused schemas. documents_test.cc tests
// that generated texts are valid.
#include "rbee/grammar/json_schema.h"

#include <gmock/gmock.h>

#include "rbee/core/cat.h"
#include "tests/support/expect_error.h"
#include "tests/units/grammar/text_cases.h"

namespace rbee::grammar {
namespace {

using testing::compile;
using testing::expect_schema_texts;
using ::testing::HasSubstr;
using testing::matches;
using testing::TextCase;

TEST(JsonSchema, TextsAreAcceptedOrNot) {
  const std::vector<TextCase> cases = {
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
      // Draft 4 and OpenAPI 3.0
      {R"({"type":"integer","minimum":3,"exclusiveMinimum":true,
          "maximum":6,"exclusiveMaximum":true})",
       {"4", "5"},
       {"3", "6"}},
      {R"({"type":"integer","minimum":3,"exclusiveMinimum":false,"maximum":4})",
       {"3", "4"},
       {"2", "5"}},
      {R"({"const":{"minimum":3,"exclusiveMinimum":true}})",
       {R"({"minimum":3,"exclusiveMinimum":true})"},
       {R"({"exclusiveMinimum":3})"}},
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
      {R"({"type":"string","pattern":"^(?!foo).*$"})",
       {R"("")", R"("bar")", R"("a\"b")"},
       {R"("foo")", R"("food")", R"("\u0066oo")"}},
      {R"({"type":"string","pattern":"^(?:(?!\\.\\.)[a-z.\"])+$"})",
       {R"("a.b")", R"("a.\"b")"},
       {R"("a..b")", R"("..")", R"("")"}},
      {R"j({"type":"string","pattern":"^foo(?=bar)"})j",
       {R"("foobar")", R"("foobar!")"},
       {R"("foo")", R"("foobaz")", R"("xfoobar")"}},
      {R"j({"type":"string","pattern":"o(?=b)"})j", {R"("foobar")", R"("ob")"}, {R"("foo")"}},
      {R"({"type":"string","pattern":"^(?=.*[0-9])[a-z0-9]+$","maxLength":3})",
       {R"("a1")", R"("123")"},
       {R"("abc")", R"("a123")"}},
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
      // An unknown format accepts every string: draft 2020-12, validation, 7.2.1.
      {R"({"type":"string","format":"password"})", {R"("x")", R"("")"}, {"1"}},
      {R"({"type":"string","format":"binary","maxLength":2})", {R"("xy")"}, {R"("xyz")"}},
      {R"({"enum":["a",1],"format":"regex"})", {R"("a")", "1"}, {R"("b")"}},
      {"true", {"1", "{}", R"([null,"x"])"}, {"", "tru"}},
      {"{}", {"1"}, {"]"}},
  };
  expect_schema_texts(cases);
}

TEST(JsonSchema, WhatSchemasSayTogether) {
  const std::vector<TextCase> cases = {
      {R"({"type":"string","pattern":"^[a-z]+-[0-9]+$","maxLength":5})",
       {R"("a-1")", R"("ab-12")", R"("abc-1")"},
       {R"("abc-12")", R"("ab12")", R"("a-")"}},
      {R"({"type":"string","pattern":"^[a-z]","minLength":3,"maxLength":3})",
       {R"("aB1")", "\"z\xC3\xA9\xE2\x82\xAC\""},
       {R"("ab")", R"("Abc")", R"("abcd")"}},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b$"},{"maxLength":3}]})",
       {R"("ab")", R"("aab")", R"("bab")"},
       {R"("ba")", R"("xxab")", R"("b")"}},
      {R"({"type":"string","format":"date","pattern":"^2024-"})",
       {R"("2024-05-06")"},
       {R"("2023-05-06")", R"("2024-")"}},
      {R"({"type":"string","format":"email","maxLength":9})",
       {R"("a@bc.de")"},
       {R"("abc@bcd.de")"}},
      {R"({"type":"string","not":{"enum":["no","\n"]}})",
       {R"("yes")", R"("n")", R"("")", R"("nono")"},
       {R"("no")", R"("\n")", R"("\u006eo")"}},
      {R"({"type":"string","maxLength":4,"not":{"pattern":"^un|x$"}})",
       {R"("do")", R"("sun")", R"("xa")"},
       {R"("undo")", R"("box")"}},
      {R"({"type":"integer","minimum":1,"maximum":5,"not":{"enum":[2,3.0]}})",
       {"1", "4", "5"},
       {"2", "3", "6"}},
      {R"({"type":"number","not":{"const":10}})",
       {"9", "10.5", "100", "-10"},
       {"10", "10.0", "10.000", "1e1"}},
      {R"({"not":{"type":["null","string"]}})", {"1", "true", "[]", "{}"}, {"null", R"("x")"}},
      {R"({"not":{"pattern":"b$"}})",
       {R"("a")", R"("ba")", R"("")"},
       {R"("ab")", "5", "null", "[]"}},
      {R"({"type":["string","integer"],"not":{"anyOf":[{"pattern":"b$"},{"const":"x"}]}})",
       {R"("a")"},
       {R"("ab")", R"("x")", "5"}},
      {R"({"not":{"multipleOf":1}})", {"1.5", "-0.25"}, {"1", "2.0", R"("a")", "null", "{}"}},
      {R"({"type":["string","number"],"not":{"multipleOf":1.0}})", {"1.5"}, {"1", R"("a")"}},
      {R"({"enum":["ab","a",5,0.5],"not":{"pattern":"b$"}})", {R"("a")"}, {R"("ab")", "5", "0.5"}},
      {R"({"oneOf":[{"type":"integer","minimum":2,"maximum":6},{"pattern":"a"}]})",
       {R"("a")"},
       {"2", "6"}},
      {R"({"type":["integer","string"],"maxLength":2,"if":{"pattern":"^a"},"then":{"minimum":3},
          "else":{"pattern":"b"}})",
       {"3", R"("a")", R"("b")"},
       {"2", R"("c")", R"("")"}},
      {R"({"type":"number","not":{"minimum":3}})", {"2.9", "-1"}, {"3", "3.5"}},
      {R"({"type":"number","maximum":3,"not":{"type":"integer"}})",
       {"0.5", "2.50", "-7.1"},
       {"1", "2.0", "-3", "3.5"}},
      {R"({"type":"boolean","not":{"const":true}})", {"false"}, {"true"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}},
          "not":{"required":["a","b"]}})",
       {"{}", R"({"a":1})", R"({"b":2})"},
       {R"({"a":1,"b":2})"}},
      {R"({"type":"array","items":{"enum":[1,2]},"maxItems":2,"not":{"contains":{"const":2}}})",
       {"[]", "[1]", "[1,1]"},
       {"[2]", "[1,2]"}},
      {R"({"type":"array","items":{"enum":[1,2]},"maxItems":3,"contains":{"const":2}})",
       {"[2]", "[1,2]", "[2,1,1]", "[1,2,2]"},
       {"[]", "[1]", "[1,1,1]", "[1,1,1,2]"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":3,"contains":{"minimum":100}})",
       {"[1,2,100]", "[100,1,2]", "[1,200,3,4]"},
       {"[100,1]", "[1,2,3]"}},
      {R"({"enum":[1,"ab",{"k":2},null,0.3],"anyOf":[{"minLength":2},{"type":"null"}],
          "not":{"type":"object","required":["k"]}})",
       {"1", R"("ab")", "null", "0.3"},
       {R"({"k":2})"}},
      {R"({"enum":[[1],[2.0],{"a":1,"b":[3]},null],"not":{"enum":[[2],{"b":[3.0],"a":1}]}})",
       {"[1]", "null"},
       {"[2.0]", R"({"a":1,"b":[3]})"}},
      {R"({"enum":[[1,1.0],[1,2]],"uniqueItems":true})", {"[1,2]"}, {"[1,1.0]"}},
      {R"({"enum":[{"a":1,"b":2},3],"allOf":[{"const":{"a":1,"b":2}},{"const":{"b":2,"a":1}}]})",
       {R"({"a":1,"b":2})"},
       {"3"}},
      {R"({"enum":[{"a":1,"b":2},3],"not":{"allOf":[{"const":{"a":1,"b":2}},
          {"enum":[{"b":2,"a":1}]}]}})",
       {"3"},
       {R"({"a":1,"b":2})"}},
      {R"({"enum":[0.3,0.35,1e3,7],"multipleOf":0.1})", {"0.3", "1000.0", "7"}, {"0.35"}},
      {R"({"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true,"minItems":2})",
       {R"(["a","b"])", R"(["c","a"])", R"(["b","c","a"])"},
       {R"(["a"])", R"(["a","a"])", R"(["a","b","a"])", "[]"}},
      {R"({"items":{"type":"string","enum":["x","\"",""]},"uniqueItems":true})",
       {"[]", R"(["","x"])", R"(["\"","","x"])"},
       {R"(["x","x"])", R"(["",""])", R"(["x","\u0078"])", R"(["z"])"}},
      {R"({"items":{"enum":["a","b","c","d","e","f","g","h"]},"uniqueItems":true,"maxItems":2})",
       {R"(["h"])", R"(["a","h"])", R"(["c","d"])"},
       {R"(["a","a"])", R"(["h","a"])", R"(["a","b","c"])"}},
      {R"({"items":{"type":"integer","minimum":1,"maximum":12},"uniqueItems":true,"maxItems":3})",
       {"[]", "[3]", "[1,12]", "[2,3,4]"},
       {"[1,1]", "[1,2,3,4]", "[13]"}},
      {R"({"items":{"type":"integer","minimum":1,"maximum":100},"uniqueItems":true,"minItems":2})",
       {"[3,100]", "[1,2,50]"},
       {"[3]", "[3,3]", "[100,3]", "[3,101]"}},
      {R"({"items":{"anyOf":[{"type":"boolean"},{"type":"null"}]},"uniqueItems":true})",
       {"[]", "[null,true,false]"},
       {"[true,true]"}},
      {R"({"type":"array","items":false,"uniqueItems":true})", {"[]", "[ ]"}, {"[1]"}},
      {R"({"items":{"enum":[1],"type":"string"},"uniqueItems":true})", {"[]"}, {"[1]"}},
      {R"({"propertyNames":false})", {"{}"}, {R"({"a":1})"}},
      {R"({"uniqueItems":true,"maxItems":1})", {"[]", R"([{"a":1}])"}, {"[1,1]", "[1,2]"}},
      {R"({"items":[{"const":1},{"const":2}],"additionalItems":{"const":3}})",
       {"[1,2]", "[1,2,3,3]"},
       {"[1]", "[1,2,2]", "[2]"}},
      {R"({"allOf":[{"prefixItems":[{"type":"integer"}]},{"items":{"minimum":5}}]})",
       {"[5]", "[7,8]"},
       {"[4]", R"(["x"])"}},
      {R"({"type":"object","patternProperties":{"^x-":{"type":"integer"},"n$":{"minimum":5}},
          "additionalProperties":{"type":"null"}})",
       {"{}", R"({"x-a":1})", R"({"x-n":5,"k":null,"n":7})"},
       {R"({"x-a":null})", R"({"x-n":4})", R"({"k":1})", R"({"\u0078-a":null})"}},
      {R"({"properties":{"x-a":{"maximum":3}},"patternProperties":{"^x-":{"minimum":2}}})",
       {R"({"x-a":3})", R"({"x-b":9})", "{}"},
       {R"({"x-a":4})", R"({"x-a":1})", R"({"y":1})"}},
      {R"({"propertyNames":{"pattern":"^[a-z]+$"},"additionalProperties":{"const":1}})",
       {R"({"a":1,"bc":1})", "{}"},
       {R"({"A":1})", R"({"":1})"}},
      {R"({"type":"object","propertyNames":{"enum":["p","q"]},"minProperties":1})",
       {R"({"p":1})", R"({"p":[],"q":null})"},
       {"{}", R"({"r":1})", R"({"p":1,"p":2})"}},
      {R"({"properties":{"a":{"const":1},"b":{"const":1},"c":{"const":1}},"minProperties":2})",
       {R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})"},
       {"{}", R"({"b":1})"}},
      {R"({"properties":{"a":{"const":1},"b":{"const":1},"c":{"const":1}},"required":["b"],
          "maxProperties":2})",
       {R"({"b":1})", R"({"a":1,"b":1})", R"({"b":1,"c":1})"},
       {R"({"a":1,"b":1,"c":1})", R"({"a":1,"c":1})"}},
      {R"({"type":"object","additionalProperties":{"const":0},"maxProperties":1})",
       {"{}", R"({"k":0})"},
       {R"({"k":0,"l":0})"}},
      {R"({"properties":{"card":{"const":1},"zip":{"const":2},"cvc":{"const":3}},
          "dependentRequired":{"card":["zip"]}})",
       {"{}", R"({"card":1,"zip":2})", R"({"zip":2})", R"({"cvc":3})"},
       {R"({"card":1})", R"({"card":1,"cvc":3})"}},
      {R"({"properties":{"a":{"const":1},"b":{"enum":[1,2]}},"dependentSchemas":{
          "a":{"properties":{"b":{"const":2}},"required":["b"]}}})",
       {"{}", R"({"b":1})", R"({"a":1,"b":2})"},
       {R"({"a":1})", R"({"a":1,"b":1})"}},
      {R"({"type":"object","properties":{"kind":{"enum":["a","b"]},"n":{"type":"integer"}},
          "required":["kind","n"],"if":{"properties":{"kind":{"const":"a"}}},
          "then":{"properties":{"n":{"minimum":10}}},"else":{"properties":{"n":{"maximum":0}}}})",
       {R"({"kind":"a","n":12})", R"({"kind":"b","n":-1})"},
       {R"({"kind":"a","n":1})", R"({"kind":"b","n":12})"}},
      {R"({"oneOf":[{"type":"integer","maximum":10},{"type":"integer","minimum":5}]})",
       {"4", "11"},
       {"5", "7", "10"}},
      {R"({"oneOf":[{"type":"object","properties":{"a":{"const":1}},"required":["a"]},
          {"type":"object","properties":{"b":{"const":2}},"required":["b"]}]})",
       {R"({"a":1})", R"({"b":2})"},
       {R"({"a":1,"b":2})", "{}"}},
      {R"({"oneOf":[{"type":"object","properties":{"t":{"const":"x"},"v":{"type":"string"}},
          "required":["t"]},{"type":"object","properties":{"t":{"const":"y"}},"required":["t"]}]})",
       {R"({"t":"x","v":"a"})", R"({"t":"y"})"},
       {R"({"t":"z"})", R"({"t":"y","v":"a"})"}},
      {R"({"oneOf":[{"enum":[1,2]},{"enum":[2,3]},{"const":4.0},{"enum":[4]},{"const":{"a":1,"b":2}},
          {"const":{"b":2,"a":1}},{"type":"integer","minimum":3,"maximum":6}]})",
       {"1", "5", "6"},
       {"2", "3", "4", "4.0", R"({"a":1,"b":2})"}},
      {R"({"oneOf":[{"type":"object","properties":{"t":{"enum":["x","y"]},"v":{"const":1}},
          "required":["t","v"]},{"type":"object","properties":{"t":{"const":"y"},
          "v":{"enum":[1,2]}},"required":["t","v"]},{"type":"object",
          "properties":{"t":{"const":"z"}},"required":["t"]}]})",
       {R"({"t":"x","v":1})", R"({"t":"y","v":2})", R"({"t":"z"})"},
       {R"({"t":"y","v":1})", R"({"t":"x","v":2})"}},
      {R"({"oneOf":[{"properties":{"t":{"const":1}},"required":["t"]},
          {"properties":{"t":{"const":2}},"required":["t"]},{"type":"null"}]})",
       {R"({"t":1})", R"({"t":2})"},
       {"null", "5"}},
      {R"({"allOf":[{"properties":{"a":{"const":1}},"additionalProperties":false},
          {"properties":{"b":{"const":2}}}]})",
       {"{}", R"({"a":1})"},
       {R"({"b":2})"}},
      {R"({"allOf":[{"anyOf":[{"const":1},{"const":2}]},{"anyOf":[{"const":2},{"const":3}]}]})",
       {"2"},
       {"1", "3"}},
      {R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"enum":[1,2]},
          "next":{"$ref":"#/$defs/n"}},"required":["v"],"not":{"properties":{"v":{"const":2}},
          "required":["v"]}}}})",
       {R"({"v":1})", R"({"v":1,"next":{"v":1,"next":{"v":1}}})"},
       {R"({"v":2})", R"({"v":1,"next":{"v":2}})"}},
      {R"({"$ref":"#here","$defs":{"a%b":{"$anchor":"here","$ref":"#/$defs/c~1d"},
          "c/d":{"const":5}}})",
       {"5"},
       {"6"}},
      {R"({"allOf":[{"type":"null","x-order":1},{"x-order":2}]})", {"null"}, {"1"}},
      {R"({"type":"string","required":true,"enum":["a"]})", {R"("a")"}, {"1"}},
      {R"({"type":"object","properties":{"a":{"not":{}},"b":{"const":1}}})",
       {"{}", R"({"b":1})"},
       {R"({"a":1})"}},
      {R"({"anyOf":[{"type":"string","enum":[1]},{"const":2}]})", {"2"}, {"1"}},
      {R"({"anyOf":[{"const":1},{"type":"array","contains":{},"items":{"not":{}},
          "anyOf":[{"maxItems":2},{"maxItems":3}]}]})",
       {"1"},
       {"[]", "[1]"}},
      {R"({"anyOf":[{"const":1},{"contains":{},"items":{"allOf":[{"type":"string"},
          {"type":"integer"}]},"anyOf":[{"maxItems":2},{"maxItems":3}]}]})",
       {"1"},
       {"[]", "[1]"}},
  };
  expect_schema_texts(cases);
}

// The message of the refusal; its code is one of the two for bad schemas.
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
  expect(R"({"properties":{"a":{"type":"string","not":{"format":"date"}}}})", "#/properties/a",
         "format");
  expect(R"({"type":"integer","multipleOf":3,"not":{"multipleOf":1}})", "#", "no number fits");
  expect(R"({"type":"object","not":{"const":{"a":1}}})", "#", "value of type object");
  expect(R"({"items":{"uniqueItems":true}})", "#/items", "uniqueItems");
  expect(R"({"uniqueItems":true,"items":false,"minItems":1})", "#", "minItems");
  expect(R"({"uniqueItems":true,"items":{"type":"string"}})", "#", "uniqueItems");
  expect(R"({"contains":{"const":1},"maxContains":2})", "#", "maxContains");
  expect(R"({"contains":{"const":1},"minContains":2})", "#", "minContains");
  expect(R"({"properties":{},"unevaluatedProperties":false})", "#", "unevaluatedProperties");
  expect(R"({"properties":{"a":{}},"patternProperties":{"^b":{}},"minProperties":2,
      "maxProperties":1})",
         "#", "minProperties is above");
  expect(R"({"minProperties":2})", "#", "minProperties above 1");
  expect(R"({"patternProperties":{"(":true}})", "#", "expected )");
  expect(R"({"patternProperties":{"a":{},"b":{},"c":{},"d":{},"e":{}}})", "#", "more than 4");
  expect(R"({"$ref":"#/$defs/a","$defs":{"a":{"$id":"b"}}})", "#/$defs/a", "$id");
  expect(R"({"$ref":"#nobody"})", "#", "$anchor");
  expect(R"({"not":{}})", "#", "no value fits");
  expect(R"({"type":"array","items":{"not":{}},"contains":{},"anyOf":[{"maxItems":2},
      {"maxItems":3}]})",
         "#", "no value fits");
  expect(R"({"type":"string","not":{"minLength":0}})", "#", "no value fits");
  expect(R"({"type":"integer","minimum":2,"maximum":6,"oneOf":[{"type":["integer","number"]},
      {"pattern":"a"}]})",
         "#", "no value fits");
  expect(R"({"type":"string","not":{"multipleOf":1}})", "#", "no value fits");
  expect(R"({"type":"integer","multipleOf":0})", "#", "above 0");
  expect(R"({"type":"integer","multipleOf":"3"})", "#", "must be a number");
  expect(R"({"type":"integer","multipleOf":1234567})", "#", "too many remainders");
  expect(R"({"type":"integer","multipleOf":4398046511103})", "#", "too many remainders");
  expect(R"({"type":"integer","multipleOf":30,"minimum":1,"maximum":29})", "#", "no multiple");
  expect(R"({"type":"number","multipleOf":1e-13})", "#", "12 places");
  expect(R"({"type":"strin"})", "#", "strin");
  expect(R"({"type":[]})", "#", "type");
  expect(R"({"$ref":"http://x/y"})", "#", "begin with #");
  expect(R"({"$ref":"#/$defs/none"})", "#", "points to nothing");
  expect(R"({"$ref":"#/a~2"})", "#", "JSON pointer");
  expect(R"({"$ref":"#"})", "grammar", "no text fits");
  expect(R"({"allOf":[{"$ref":"#"}]})", "#", "lead to each other");
  expect(R"({"enum":[]})", "#", "enum");
  expect(R"({"type":"string","enum":[1]})", "#", "no value of enum");
  expect(R"({"enum":[1],"minimum":2})", "#", "no value of enum");
  expect(R"({"type":"string","pattern":"(a"})", "#/pattern", "expected )");
  expect(R"({"type":"string","pattern":"^a{4}","maxLength":3})", "#", "no string fits");
  expect(R"({"type":"string","format":5})", "#", "format must be a string");
  expect(R"({"type":"string","minLength":3,"maxLength":2})", "#", "minLength is above");
  expect(R"({"type":"string","maxLength":-1})", "#", "maxLength");
  expect(R"({"type":"integer","minimum":3,"maximum":2})", "#", "no number");
  expect(R"({"type":"number","minimum":1e-20})", "#", "behind the point");
  expect(R"({"type":"number","exclusiveMinimum":123456789.12345678})", "#", "15 in all");
  expect(R"({"type":"integer","minimum":1e30})", "#", "20 digits");
  expect(R"({"properties":{},"required":["x"],"additionalProperties":false})", "#", "required");
  expect(R"({"allOf":[{"type":"null"},{"type":"string"}]})", "#/allOf/1", "no type");
  expect(R"({"allOf":[{"pattern":"^a"},{"pattern":"^b"}]})", "#", "no string fits");
  expect(R"({"allOf":[{"format":"date"},{"format":"time"}]})", "#/allOf/1", "format");
  expect(R"({"anyOf":[]})", "#", "anyOf");
  expect(R"({"properties":{"a":false},"required":["a"]})", "#/properties/a", "no value fits");
  expect("[]", "#", "object, true or false");
  expect(R"({"not":{"required":[1]}})", "#/not:", "required must be");
  expect(R"({"not":{"pattern":5}})", "#/not:", "pattern must be");
  expect(R"({"not":{"enum":[]}})", "#/not:", "enum must be");
  expect(R"({"not":{"anyOf":{"a":{"enum":[1]}}}})", "#/not:", "anyOf must be");
  expect(R"({"not":{"type":"strin"}})", "#/not:", "strin");
  expect(R"({"propertyNames":{"enum":5}})", "#/propertyNames:", "enum must be");
  expect(R"({"allOf":[{"required":"a"},{"required":["b"]}]})", "#/allOf/0:", "required must be");
  expect(R"({"uniqueItems":true,"items":{"enum":5}})", "#/items:", "enum must be");
  expect(R"({"properties":{"a":{"minLength":1.5}}})", "#/properties/a:", "minLength must be");
  expect(R"({"items":[true,{"uniqueItems":1}]})", "#/items/1:", "uniqueItems must be");
  expect(R"({"dependentRequired":{"a":[1]}})", "#:", "dependentRequired/a must be");
  expect(R"({"$ref":"#/x","x":{"minimum":"3"}})", "#/x:", "minimum must be");
  expect(R"({"enum":[{}],"if":{"properties":[]},"then":{}})", "#/if:", "properties must be");
  expect(R"({"not":{"maxLength":1e300}})", "#", "above 100000");
  expect(R"({"type":"string","minLength":2147483647})", "#", "minLength is above 100000");
  expect(R"({"minItems":100001})", "#", "minItems is above 100000");
  expect(R"({"minProperties":100001})", "#", "minProperties is above 100000");
  expect(R"({"type":"integer","exclusiveMinimum":true})", "#:", "exclusiveMinimum must be");
  expect("{", "json_schema", "line 1, column 2: expected a name");
  expect("\"\xFF\"", "json_schema", "line 1, column 2: the byte 0xff");
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += R"({"items":)";
  expect((deep + "{}" + std::string(100, '}')).c_str(), "json_schema", "deep");
}

TEST(JsonSchema, OneOfHasManyAlternatives) {
  std::string consts, references, objects, open;
  for (int i = 0; i < 249; ++i) {
    const std::string comma = i == 0 ? "" : ",";
    consts += cat(comma, R"({"const":"C)", i, R"(","title":"Country"})");
    if (i < 12)
      open += cat(comma, R"({"type":"object","properties":{"k)", i,
                  R"(":{"const":1}},"required":["k)", i, R"("]})");
    if (i >= 80) continue;
    references += cat(comma, R"({"$ref":"#/$defs/t)", i, R"("})");
    objects += cat(comma, "\"t", i, R"(":{"type":"object","properties":{"tag":{"const":)", i,
                   R"(},"v":{"type":"integer"}},"required":["tag"]})");
  }
  expect_schema_texts(
      {{cat(R"({"oneOf":[)", consts, "]}"), {R"("C0")", R"("C248")"}, {R"("C249")"}},
       {cat(R"({"oneOf":[)", references, R"(],"$defs":{)", objects, "}}"),
        {R"({"tag":0})", R"({"tag":79,"v":1})"},
        {R"({"tag":80})", R"({"v":1})"}},
       {cat(R"({"oneOf":[)", open, "]}"),
        {R"({"k0":1})", R"({"k11":1})", R"({"k3":1,"k4":2})"},
        {R"({"k3":1,"k4":1})", "{}"}}});
}

// A value that is validated 2^levels times.
std::string doubling(int levels) {
  std::string out = R"({"enum":[[1],"x"],"items":{"$ref":"#/$defs/d0"},"$defs":{)";
  for (int i = 0; i < levels; ++i) {
    const std::string next = cat(R"({"$ref":"#/$defs/d)", i + 1, R"("})");
    out += cat("\"d", i, R"(":{"allOf":[)", next, ",", next, "]},");
  }
  return out + cat("\"d", levels, R"(":{"minimum":1}}})");
}

TEST(JsonSchema, ChecksOfNamedValuesAreBounded) {
  EXPECT_TRUE(matches(compile(parse_json_schema(doubling(8))), "[1]"));
  EXPECT_THAT(refusal(doubling(29)), HasSubstr("too much to check"));
  std::string patterns;
  for (char c = 'c'; c <= 'z'; ++c) {
    patterns +=
        cat(patterns.empty() ? "" : ",", R"({"pattern":"()", c, "|b)*", c, "(", c, "|b){12}\"}");
  }
  EXPECT_THAT(refusal(cat(R"({"enum":["bbb"],"anyOf":[)", patterns, "]}")), HasSubstr("too large"));
}

TEST(JsonSchema, TextsOfAllPlacesAreBounded) {
  std::string one, all;
  for (const char* c : {"a", "b", "c", "d"}) {
    one += cat(one.empty() ? "" : ",", R"("(a|b)*)", c, R"((a|b){8}":true)");
  }
  for (int i = 0; i < 30; ++i)
    all += cat(i == 0 ? "" : ",", R"({"patternProperties":{)", one, "}}");
  EXPECT_THAT(refusal(cat(R"({"prefixItems":[)", all, "]}")), HasSubstr("too large"));
}

TEST(JsonSchema, ObjectsHaveHundredsOfOptionalProperties) {
  const auto schema = [](int count) {
    std::string out = R"({"additionalProperties":{"type":"null"},"properties":{)";
    for (int i = 0; i < count; ++i)
      out += cat(i == 0 ? "" : ",", "\"n", i, R"(":{"type":"integer"})");
    return out + "}}";
  };
  expect_schema_texts(
      {{schema(400),
        {"{}", R"({"n0":0,"n399":1,"x":null})", R"({"n5":5})", R"({"x":null,"y":null})"},
        {R"({"n5":1,"n4":1})", R"({"x":null,"n1":1})", R"({"n5":1,"n5":1})"}}});
  EXPECT_THAT(refusal(schema(401)), HasSubstr("400 optional properties"));
}

// n / 1000 in JSON, without trailing zeros.
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
