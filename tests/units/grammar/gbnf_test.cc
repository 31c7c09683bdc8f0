// GBNF grammars: the texts they accept, and the errors of bad ones.
#include "rbee/grammar/gbnf.h"

#include <gmock/gmock.h>

#include "tests/support/expect_error.h"
#include "tests/units/grammar/text_cases.h"

namespace rbee::grammar {
namespace {

using testing::compile;
using testing::expect_texts;
using testing::TextCase;

TEST(Gbnf, TextsAreAcceptedOrNot) {
  const std::vector<TextCase> cases = {
      {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "ye", "yesno", "Yes"}},
      {"root ::= \"a\" \"b\"? \"c\"*", {"a", "ab", "abccc", "acc"}, {"b", "abb", "acb"}},
      {"root ::= [a-cx]{2,3}", {"ab", "xxx"}, {"a", "abca", "ad"}},
      {"root ::= [0-9]{2}", {"42"}, {"4", "421"}},
      {"root ::= [0-9]{2,}", {"42", "421111"}, {"4"}},
      {"root ::= [0-9]{,2}", {"", "4", "42"}, {"421"}},
      {"root ::= [^\"\\\\\\n]+", {"abc", "\xC3\xA9"}, {"", "a\"", "a\\", "\n", "\xC3"}},
      {"root ::= .", {"a", "\n", "\xE2\x82\xAC", "\xF0\x9F\x99\x82"}, {"", "ab", "\xE2\x82"}},
      {"root ::= \"\\x41\\u00e9\\U0001F642\\t\\\"\"", {"A\xC3\xA9\xF0\x9F\x99\x82\t\""}, {"A"}},
      {"root ::= [\\u00e0-\\u00ff\\]-]", {"\xC3\xA9", "]", "-"}, {"\xC3", "a", "\xC3\x97"}},
      {"# a comment\nroot ::= first # more\n  second\n\nfirst ::= \"1\"\nsecond ::= \"2\" | (\n"
       "  \"3\" | # three\n  \"4\" )\n",
       {"12", "13", "14"},
       {"1", "2"}},
      {"root ::= \"a\"\n  | \"b\"\n", {"a", "b"}, {"ab"}},
      {"root ::= \"(\" root \")\" | \"x\"", {"x", "((x))"}, {"(x", "x)", "()"}},
      {"root ::= item (\",\" item)*\nitem ::= [a-z]+ | \"[\" root \"]\"",
       {"a,b", "[a,[b]],c"},
       {"a,", "[a"}},
      // The empty text repeated, and parts that may be empty.
      {"root ::= (\"\")* (a b)* \"!\"\na ::= \"x\"?\nb ::= \"y\"*", {"!", "xxy!", "yyx!"}, {"z!"}},
      // Ambiguous.
      {"root ::= (\"a\" | \"a\" \"a\" | \"aa\")* \"b\"", {"b", "aaaaaaab"}, {"a"}},
      {"root ::= s\ns ::= \"a\" s | \"a\" s s | \"\"", {"", "aaaa"}, {"b"}},
      {"root ::= \"a\" root | \"\"", {"", "aaa"}, {"ab"}},
      // Space before repetitions and inside of their bounds.
      {"root ::= \"a\" * \"b\" ?", {"", "aab", "b"}, {"abb"}},
      {"root ::= [a-z] + [0-9] {2}", {"ab12"}, {"12", "a1"}},
      {"root ::= (\"a\" | \"b\") {2,3}", {"ab", "bbb"}, {"a", "abab"}},
      {"root ::= \"a\"{ 2 , 3 } b {\t1,\n}\nb ::= \"b\"", {"aab", "aaabb"}, {"ab", "aa"}},
      {"root ::= (\"a\" # first\n  *\r\n \"b\") +", {"ab", "bb"}, {"a", ""}},
      // A carriage return alone ends a line, and so a comment.
      {"# top\rroot ::= a # one\ra ::= (\"a\" # two\r \"b\")\r", {"ab"}, {"", "a"}},
      // Of two rules with one name the later one counts, also for references before it.
      {"root ::= a\na ::= \"x\"\na ::= \"y\"", {"y"}, {"x", "xy"}},
      {"root ::= \"q\"\nroot ::= a a\na ::= missing\na ::= \"z\"\nmissing ::= \"m\"",
       {"zz"},
       {"q", "mm"}},
      // Rules that can never end are skipped.
      {"root ::= \"a\" (endless | \"b\")\nendless ::= \"c\" endless", {"ab"}, {"ac", "a"}},
  };
  expect_texts(cases, [](const std::string& text) { return parse_gbnf(text); });
}

TEST(Gbnf, FaultsAreNamedWithTheirPlace) {
  const auto expect = [](const char* text, const char* first, const char* second) {
    harness::expect_error("grammar", first, second, [&] { compile(parse_gbnf(text)); });
  };
  expect("root ::= \"a\"\nb ::= [z-a]\n", "line 2, column 11", "range ends before");
  expect("root ::= \"a", "at byte 11", "ends too early");
  expect("root ::= other", "other", "not defined");
  expect("top ::= \"a\"", "root", "no rule");
  expect("root ::= (\"a\"", "expected )", "byte");
  expect("root ::= \"a\"{3,2}", "at most 2", "at least 3");
  expect("root ::= \"a\"{x}", "number of repetitions", "byte 13");
  expect("root ::= \"a\"{200000}", "100000", "repetitions");
  expect("root ::= \"\\q\"", "unknown escape", "byte");
  expect("root ::= \"\\ud800\"", "no character", "byte");
  expect("root ::= \"\xFF\"", "UTF-8", "byte 10");
  expect("root = \"a\"", "expected ::=", "byte 5");
  expect("root ::= <think>", "tokens such as", "byte 9");
  expect("root ::= \"a\" !<[7]>", "tokens such as", "byte 13");
  expect("root ::= \"a\"{2 3}", "expected }", "byte 15");
  expect("", "root", "no rule");
  expect(("root ::= " + std::string(200, '(')).c_str(), "groups in each other", "100");
}

TEST(Gbnf, WhatCannotBeReadForwardIsRefused) {
  const auto expect = [](const char* text, const char* first, const char* second) {
    harness::expect_error("grammar", first, second, [&] { compile(parse_gbnf(text)); });
  };
  expect("root ::= root \"a\" | \"b\"", "root", "left recursion");
  expect("root ::= a\na ::= b \"x\"\nb ::= a | \"y\"", "left recursion", "begins with itself");
  expect("root ::= empty root | \"a\"\nempty ::= \"\"", "root", "left recursion");
  expect("root ::= \"a\" root", "no text fits", "root");
  expect("root ::= []", "no text fits", "root");
}

// The unsupported error's message.
std::string refusal(const std::string& text) {
  try {
    compile(parse_gbnf(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Gbnf, SizesAreBounded) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal("root ::= (a{1000}){1000}\na ::= \"b\"?"), HasSubstr("too large"));
  // An automaton would have to remember the last 30 characters.
  EXPECT_THAT(refusal("root ::= [ab]* \"a\" [ab]{30}"), HasSubstr("too large"));
  std::string many = "root ::= \"a\"\n";
  for (int i = 0; i < 6000; ++i) many += cat("r", i, " ::= \"a\"\n");
  EXPECT_THAT(refusal(many), HasSubstr("6001 rules"));
}

TEST(Gbnf, TooManyReadingsEndTheText) {
  // Each character doubles the number of possible stacks.
  const auto grammar = compile(
      parse_gbnf("root ::= s\ns ::= x \"b\" | y \"c\" | \"d\"\nx ::= \"a\" s\ny ::= \"a\" s"));
  Matcher matcher(grammar);
  EXPECT_THROW(matcher.accept(std::string(40, 'a')), Error);
}

}  // namespace
}  // namespace rbee::grammar
