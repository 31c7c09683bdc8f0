// Bodies with long strings, which the parser leaves out: they must read as by the library alone.

#include "server/wire/json_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rbee/core/cat.h"
#include "server/wire/generate_request.h"
#include "tests/support/held_bytes.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr size_t kLong = size_t{64} << 10;

std::string quoted(const std::string& text) {
  return json(text).dump();
}

std::string refusal_of(const std::string& text) {
  try {
    const JsonBody body(text);
  } catch (const InvalidBody& error) {
    return error.errors().front().message;
  }
  return "none";
}

// In each place of a body.
void expect_read(const std::string& content) {
  const std::string value = quoted(content), name = quoted("n" + content);
  const std::string text =
      cat(R"({"a":)", value, R"(,"":[)", value, R"(, "", )", value, R"( ],"e":"","b" : {"c":)",
          value, "  ,", name, " : 1},\"last\":", value, R"(,"n":1})");
  const json wanted = json::parse(text);
  JsonBody body(text);
  for (const char* field : {"n", "last", "e", "b", "", "a"}) {
    EXPECT_TRUE(body[field] == wanted.at(field)) << field;
  }
  EXPECT_TRUE(json(body.in_order("b")) == wanted.at("b"));
  EXPECT_TRUE(parse_array(cat("[", value, ",\"\"]")) == json({content, ""}));
}

// Strings around the length from which they are left out; with escapes, in UTF-8, and of what could
// be taken for the text around them.
TEST(JsonBody, ReadsLongStringsAsOthers) {
  const std::string plain(kLong, 'x');
  for (const std::string& each :
       {plain, plain.substr(1), plain + "x", plain + "\"", "\\" + plain, plain + "\xC3\xA9",
        plain + "{\"a\":1}", std::string(kLong, ' '), std::string(kLong, '"')}) {
    SCOPED_TRACE(cat(each.substr(0, 3), " ", each.size()));
    expect_read(each);
  }
}

TEST(JsonBody, RefusesFaultsBesideLongStrings) {
  const std::string value = quoted(std::string(kLong, 'x'));
  EXPECT_EQ(refusal_of(cat(R"({"a":)", value, "}")), "none");
  EXPECT_EQ(refusal_of(cat("{", value, ":1,", value, ":2}")).substr(0, 9), "the name ");
  for (const std::string& text :
       {cat(R"({"a":)", value), cat(R"({"a":)", value, value, "}"), cat(R"({"a" )", value, "}"),
        cat(R"({"a":x)", value, "}"), cat(R"({"a":)", value.substr(0, value.size() - 1)),
        cat(R"({"a":)", value.substr(1), "}"), cat("{", value, "}"),
        cat("{\"a\":\"\n\",\"b\":", value, "}")}) {
    EXPECT_THAT(refusal_of(text), ::testing::StartsWith("not JSON in UTF-8"));
  }
  EXPECT_EQ(refusal_of(cat(R"({"a":)", value, ",}")),
            cat("not JSON in UTF-8: line 1, column ", 5 + value.size() + 2,
                ": expected a name in double quotes, found \"}\""));
}

// The library's parser takes a null byte for the end of the text.
TEST(JsonBody, DoesNotEndAtANullByte) {
  using namespace std::literals;
  for (const std::string& text :
       {"{\"a\":1}\0"s, "{\"a\":1}\0,\"b\":2}"s, "{\"a\":\0 1}"s, "\0{}"s}) {
    EXPECT_THAT(refusal_of(text), ::testing::AllOf(::testing::StartsWith("not JSON in UTF-8"),
                                                   ::testing::HasSubstr("\\x00")));
  }
  EXPECT_THROW(parse_array("[1]\0[2]"s), InvalidBody);
}

using JsonBytes = testing::HeldBytes;

// A picture in base64 is held once beside the body.
TEST_F(JsonBytes, OfALongStringAreItsOwn) {
  constexpr size_t kBytes = size_t{4} << 20;
  const std::string text = cat(R"({"images":[)", quoted(std::string(kBytes, 'A')), "]}");
  EXPECT_LT(bytes_per(kBytes, [&] { JsonBody(text).read("images"); }), 1.1);
}

}  // namespace
}  // namespace rbee::server
