// Grammars in Lark's notation: the same verdicts as Lark's, and refused grammars.
#include "rbee/grammar/lark.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/grammar/json_schema.h"
#include "tests/support/data_folder.h"
#include "tests/support/expect_error.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

using nlohmann::json;
using testing::compile;
using testing::matches;

TEST(Lark, TextsAreThoseThatLarkAccepts) {
  std::ifstream file(test::data_folder() + "/units/grammar/data/lark.json");
  const json cases = json::parse(file);
  ASSERT_EQ(cases.size(), 8u);
  for (const json& one : cases) {
    const auto text = one.at("grammar").get<std::string>();
    const auto plain = compile(parse_lark(text));
    const auto quoted = compile(parse_lark(text, json_string_chars));
    for (const char* verdict : {"accepted", "rejected"}) {
      for (const json& sample : one.at(verdict)) {
        const bool fits = std::string_view(verdict) == "accepted";
        EXPECT_EQ(matches(plain, sample.get<std::string>()), fits) << sample << text;
        // The sample as inside a JSON string.
        const std::string inner = sample.dump().substr(1, sample.dump().size() - 2);
        EXPECT_EQ(matches(quoted, inner), fits) << sample << text;
      }
    }
  }
}

// Codex's tool apply_patch; Lark's own parsers refuse its /(.*)/.
TEST(Lark, TerminalsMayBeEmpty) {
  const auto grammar = compile(parse_lark(R"(start: "+" /(.*)/ LF -> line
%import common.LF)"));
  EXPECT_TRUE(matches(grammar, "+\n"));
  EXPECT_TRUE(matches(grammar, "+a b\n"));
  EXPECT_FALSE(matches(grammar, "+a"));
  EXPECT_FALSE(matches(grammar, "+a\n\n"));
}

TEST(Lark, ATerminalLooksAheadInFront) {
  const auto grammar = compile(parse_lark("start: /(?!if$)[a-z]+/ \"!\""));
  EXPECT_TRUE(matches(grammar, "iff!"));
  EXPECT_FALSE(matches(grammar, "if!"));
}

TEST(Lark, ExpressionsHaveFlags) {
  const auto grammar = compile(parse_lark("start: /a.|b/isu \"c\""));
  EXPECT_TRUE(matches(grammar, "A\nc"));
  EXPECT_TRUE(matches(grammar, "Bc"));
  EXPECT_FALSE(matches(grammar, "BC"));
}

TEST(Lark, WhatIsOutsideIsRefusedByName) {
  const auto expect = [](const char* text, const char* first, const char* second = "lark") {
    harness::expect_error("lark", first, second, [&] { compile(parse_lark(text)); });
  };
  expect("a: \"b\"", "no rule start");
  expect("start: b", "b is not defined");
  expect("start: \"a\"\nstart: \"b\"", "start is defined twice", "line 2");
  expect("start: \"a\"\n%declare X", "%import and %ignore", "line 2, column 2");
  expect("start: X\n%import python.X", "only terminals of `common`", "line 2");
  expect("start: X\n%import common.X", "common.X is not known", "line 2");
  expect("start: sep{A, \",\"}", "templates");
  expect("sep{x, y}: x\nstart: \"a\"", "templates");
  expect("start: /a/m", "the flag m");
  expect("start: /a\\b/", "a terminal has no \\b");
  expect("start: /a(?!b)./", "a terminal may look ahead only at its beginning", "byte 4");
  expect("start: /(?!a(?!b))./", "a terminal may look ahead only at its beginning", "byte");
  expect("start: \"\xC3\xA9\"i", "in ASCII");
  expect("start: A\nA: b\nb: \"c\"", "the rule b stands in a terminal");
  expect("start: <|end|>", "unexpected <");
  expect("start: \"a", "too early");
  expect("start: /a", "no end in its line");
  expect("start: \"a\\d\"", "unknown escape");
  expect("start: \"\"", "a text is empty");
  expect("start: \"b\"..\"a\"", "no range");
  expect("start: \"ab\"..\"c\"", "no range");
  expect("start: \"a\"~3..1", "at most 1");
  expect("start: (\"a\"", "expected )");
  expect("start: \"a\")", "unexpected )");
  expect("sTart: \"a\"", "neither");
  harness::expect_error("grammar", "left recursion", "",
                        [] { compile(parse_lark("start: b \"x\" | \"y\"\nb: start \"z\"")); });
}

}  // namespace
}  // namespace rbee::grammar
