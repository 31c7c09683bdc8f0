#include "rbee/core/json_fault.h"

#include <gtest/gtest.h>

#include <string>

namespace rbee {
namespace {

struct Case {
  std::string text, fault;
};

TEST(JsonFault, SaysWhereAndWhatIsWanted) {
  const Case cases[] = {
      {"", "line 1, column 1: expected a value, found the end of the text"},
      {"{\n  \"a\": 1\n  \"b\": 2\n}", "line 3, column 3: expected a comma or }, found \"\"\""},
      {"{\"a\": 1,}", "line 1, column 9: expected a name in double quotes, found \"}\""},
      {"{'a': 1}", "line 1, column 2: expected a name in double quotes or }, found \"'\""},
      {"{\"a\" 1}", "line 1, column 6: expected a colon behind the name, found \"1\""},
      {"{\"a\":}", "line 1, column 6: expected a value, found \"}\""},
      {"[1, 2", "line 1, column 6: expected a comma or ], found the end of the text"},
      {"[1,]", "line 1, column 4: expected a value, found \"]\""},
      {"[", "line 1, column 2: expected a value or ], found the end of the text"},
      {"[True]", "line 1, column 2: expected a value or ], found \"True\""},
      {"[1] x", "line 1, column 5: expected the end of the text, found \"x\""},
      {"// no", "line 1, column 1: expected a value, found \"/\""},
      {"[01]", "line 1, column 3: expected a comma or ], found \"1\""},
      {"[1.]", "line 1, column 4: expected a digit, found \"]\""},
      {"[-]", "line 1, column 3: expected a digit, found \"]\""},
      {"[1e+]", "line 1, column 5: expected a digit, found \"]\""},
      {"[NaN]", "line 1, column 2: expected a value or ], found \"NaN\""},
      {"[1e400]", "line 1, column 2: the number 1e400 is beyond the range of a double"},
      {"\"abc", "line 1, column 1: the string that begins here does not end"},
      {"\"a\nb\"",
       "line 1, column 3: a string holds the control character 0x0a, which must be written as an "
       "escape"},
      {"\"\\x\"",
       "line 1, column 3: expected one of \" \\ / b f n r t u behind a backslash, found \"x\""},
      {"\"\\u12g4\"", "line 1, column 4: expected four hexadecimal digits behind \\u"},
      {"\"\\ud800\"", "line 1, column 2: half of a surrogate pair stands alone"},
      {"\"\\udc00\"", "line 1, column 2: half of a surrogate pair stands alone"},
      {"\"\\ud800\\u0041\"", "line 1, column 2: half of a surrogate pair stands alone"},
      {"[\"\u00e4\u00f6\" \xff]", "line 1, column 7: expected a comma or ], found the byte 0xff"},
      {"\"\xff\"", "line 1, column 2: the byte 0xff is not UTF-8"},
      {std::string("[\0]", 3), "line 1, column 2: expected a value or ], found \"\\x00\""},
  };
  for (const Case& each : cases) EXPECT_EQ(json_fault(each.text), each.fault) << each.text;
}

TEST(JsonFault, FindsNoneInJson) {
  for (const char* text :
       {"0", " [ ] ", "{ }", "[[],{},[{}]]", "{\"a\":{\"b\":[1,-0.5e-3,1E+2]},\"c\":null}",
        "\"\\ud83d\\ude00 \\\\ \\/ \U0001F600\"", "[true,false,null]", "1e-400",
        "\xEF\xBB\xBF{\"a\":\"\"}"}) {
    EXPECT_EQ(json_fault(text), "") << text;
  }
}

TEST(JsonFault, ReadsPythonsNumbersWhereTheyAreTaken) {
  const std::string text = "[NaN, Infinity, -Infinity, 1 2]";
  EXPECT_EQ(json_fault(text, JsonDialect::python),
            "line 1, column 30: expected a comma or ], found \"2\"");
}

TEST(JsonFault, DepthCostsNoStack) {
  const std::string text(size_t{1} << 22, '[');
  EXPECT_EQ(json_fault(text),
            "line 1, column 4194305: expected a value or ], found the end of the text");
}

}  // namespace
}  // namespace rbee
