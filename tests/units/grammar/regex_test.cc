// Regular expressions: the texts they match whole, and refused expressions.
#include "rbee/grammar/regex.h"

#include <gmock/gmock.h>

#include "rbee/core/error.h"
#include "tests/support/expect_error.h"
#include "tests/units/grammar/text_cases.h"

namespace rbee::grammar {
namespace {

using testing::compile;
using testing::expect_texts;
using testing::TextCase;

std::shared_ptr<const CompiledGrammar> regex(const std::string& pattern) {
  return compile({.rules = {{"regex", parse_regex("regex", pattern)}}, .root = 0});
}

void expect_pattern_texts(const std::vector<TextCase>& cases, Match match) {
  expect_texts(cases, [match](const std::string& pattern) -> Grammar {
    return {.rules = {{"regex", parse_regex("regex", pattern, {}, match)}}, .root = 0};
  });
}

TEST(Regex, TextsAreAcceptedOrNot) {
  const std::vector<TextCase> cases = {
      {"abc", {"abc"}, {"", "ab", "abcd", "xabc"}},
      {"a|bc|", {"a", "bc", ""}, {"b"}},
      {"(?:ab)+c?", {"ab", "ababc"}, {"", "abcc"}},
      {"(?P<year>\\d{4})-(?<month>0[1-9]|1[0-2])", {"2024-12"}, {"2024-13", "24-12"}},
      {"[^a-c\\d]", {"d", "\xC3\xA9"}, {"a", "5", "de"}},
      {"[]a-]+", {"]a-"}, {"b"}},
      {"\\w+\\s\\W\\S", {"a_9 !x"}, {"a_9!!x"}},
      {".", {"a", "\xE2\x82\xAC"}, {"\n", ""}},
      {"\\x41\\u00e9\\x{1F642}\\.\\/", {"A\xC3\xA9\xF0\x9F\x99\x82./"}, {"A"}},
      {"\\u{41}\\u{1F642}", {"A\xF0\x9F\x99\x82"}, {"A"}},
      {"[\\ud83d\\ude00-\\uD83D\\uDE42]", {"\xF0\x9F\x99\x82"}, {"\xF0\x9F\x99\x83"}},
      {"^a$|^b$", {"a", "b"}, {"ab"}},
      {"^(?:a|b)$", {"a", "b"}, {"c"}},
      {"(^a|b$)", {"a", "b"}, {""}},
      {"a{2}b{1,2}c{0,}d{,1}", {"aab", "aabbccd"}, {"ab", "aabbb"}},
      {R"({"n": [0-9]{2}})", {R"({"n": 12})"}, {R"({"n": 1})", R"("n": 12})"}},
      {"a{b}{2,x{", {"a{b}{2,x{"}, {"ab"}},
      {"(?i){a{2}", {"{AA"}, {"{A{2}"}},
      {"a*?b+?c??", {"b", "aabbc"}, {"a"}},
      {"(a|ab)(c|bcd)", {"ac", "abcd", "abc"}, {"ab"}},
      {"}]", {"}]"}, {"}"}},
      {"^(?!foo).*$", {"", "fo", "bar", "xfoo"}, {"foo", "foobar"}},
      {"(?!foo$)\\w+", {"food", "fo"}, {"foo", ""}},
      {"(?=.*[0-9])(?=.*[a-z])[a-z0-9]{2,3}", {"a1", "1ab"}, {"ab", "12", "a123", "a"}},
      {"(?!a|b$).{1,2}|ab", {"ab", "bc", "c"}, {"a", "b", "ac"}},
      {"(?!.*\\n)[^x]*", {"a b", ""}, {"a\nb", "x"}},
      {"(?!(?:un|re)).\\w*", {"ut", "\xC3\xA9t"}, {"under", "re"}},
      {"x(?=a)(a|b)", {"xa"}, {"xb", "x"}},
      {"x(?!ab|c$)[a-c]*", {"x", "xaa", "xcb"}, {"xab", "xabb", "xc"}},
      {"(?:(?!END).)*END;", {"END;", "abEEND;", "ENEND;"}, {"END", "aENDEND;", "ENDaEND;"}},
      {"(?:<(?!/)\\w>|(?!<).)*", {"<a>b", "a>"}, {"</a>", "<"}},
      {"(?:\\w(?=-|$)|\\w\\w(?!-)|-)+", {"a", "ab", "abc", "a-bc"}, {"ab-", ""}},
      {"(?!(?=ab)a)[ab]{2}", {"aa", "ba"}, {"ab"}},
      {"(?:(?=a)|b)*a?", {"", "ba", "a", "bb"}, {"ab"}},
      {"(?:a(?!a$))+a?|\xC3\xA9(?!\xC3\xA9)+.",
       {"a", "\xC3\xA9x"},
       {"aa", "aaa", "\xC3\xA9\xC3\xA9"}},
      // pydantic's pattern for a Decimal.
      {"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$", {"1", "-0.5", "+7.", ".5"}, {"", "-", ".", "+.", "1e"}},
      {"x(?!^a)a?", {"x", "xa"}, {"a"}},
      {"(?:^|,)a|b^c", {"a", ",a"}, {",,a", "bc"}},
      {"(?:(?:^|,)[ab])+", {"a", "a,b", ",a,b"}, {"ab", "a,", ""}},
      {"(?:a$|a,)+", {"a", "a,a", "a,"}, {"aa", ",", ""}},
      {"(?:(?:^)+)+a", {"a"}, {""}},
      {"a(?:^b)?(?:$|c)", {"a", "ac"}, {"ab"}},
  };
  expect_pattern_texts(cases, Match::whole);
}

TEST(Regex, BordersOfWords) {
  expect_pattern_texts(
      {
          {"\\bfoo\\b", {"foo"}, {"food"}},
          {"\\b.*\\b", {"a", "a b", "a-b"}, {"", "-", "a-", "-a"}},
          {"(?:\\b\\w+\\b ?)+", {"the cat", "the "}, {" the"}},
          {"a\\Bb\\Bc?", {"abc"}, {"ab"}},
          {"\\B-\\b[a-z]+\\b-\\B", {"-a-", "-ab-"}, {"--"}},
          {"x(?=\\b)-|x(?!\\b)y", {"x-", "xy"}, {"x"}},
          {"(?=\\ba).*|(?!\\b).*", {"a", "ab", "-", ""}, {"b"}},
          {"[\\b]", {"\b"}, {"b"}},
          {"\xC3\xA9\\ba",
           {"\xC3\xA9"
            "a"},
           {"a"}},
      },
      Match::whole);
  expect_pattern_texts(
      {
          {"\\bcat\\b", {"cat", "a cat.", "cat!"}, {"cats", "concat", "ca"}},
          {"cat\\B", {"cats", "concats"}, {"cat", "cat s"}},
          {"^\\b", {"a", "a-"}, {"-a", ""}},
      },
      Match::anywhere);
}

TEST(Regex, Flags) {
  expect_pattern_texts(
      {
          {"(?i)ab[c-e]", {"ABC", "abE", "aBd"}, {"abf", "ab"}},
          {"(?i:a)b", {"Ab", "ab"}, {"aB"}},
          {"(?i)a(?-i:b)c", {"AbC"}, {"aBc"}},
          {"(a(?i)b|c)d",
           {"aB"
            "d",
            "Cd", "abd"},
           {"Abd", "abD"}},
          {"(?i)[^k]", {"j", "J"}, {"k", "K", "\xE2\x84\xAA"}},
          {"(?i)\xC3\xA9\\x41",
           {"\xC3\x89"
            "a",
            "\xC3\xA9"
            "A"},
           {"e"
            "a"}},
          {"(?s)a.b", {"a\nb"}, {"ab"}},
          {"(?is)a.b", {"A\nB"}, {"ab"}},
          {"(?s-i:.)", {"\n", "a"}, {""}},
          {"\\Aa\\z|\\Ab\\Z", {"a", "b"}, {"ab"}},
      },
      Match::whole);
}

TEST(Regex, PropertiesOfCharacters) {
  expect_pattern_texts(
      {
          {"\\p{L}+", {"a\xC3\xA9\xE4\xB8\xAD"}, {"1", "_", ""}},
          {"\\p{Letter}\\pN", {"a1", "a\xC2\xBD"}, {"11"}},
          {"\\P{Lu}", {"a", "1"}, {"A", "\xC3\x89"}},
          {"[\\p{Lu}_]", {"A", "_", "\xC3\x89"}, {"a"}},
          {"[^\\p{L}]", {"1"}, {"a"}},
          {"\\p{Script=Greek}+", {"\xCE\xB1\xCE\xA9"}, {"a"}},
          {"\\p{sc=Cyrl}|\\p{Han}", {"\xD0\x96", "\xE4\xB8\xAD"}, {"a"}},
          {"\\p{White_Space}\\p{gc=Nd}", {" 7", "\xE2\x80\xA8\xD9\xA3"}, {"a7"}},
          {"\\p{L}{1,40}", {std::string(40, 'x').c_str()}, {"1"}},
      },
      Match::whole);
}

TEST(Regex, PartsOfTextsMatch) {
  const std::vector<TextCase> cases = {
      {"b", {"b", "abc", "\nb"}, {"", "ac"}},
      {"^b|c$", {"b", "bx", "xc"}, {"ab", "cx", ""}},
      {"(^|-)b($|-)", {"b", "a-b", "b-a", "a-b-a"}, {"ab", "ba", "a-ba"}},
      {"(?:^a|b)c", {"ac", "acx", "xbc"}, {"xac", "c"}},
      {"a(?!b|$)", {"ac", "aba."}, {"a", "ab", "aba"}},
      {"(?=^a)|b", {"a", "ax", "xb"}, {"xa", ""}},
      {"^$", {""}, {"a"}},
  };
  expect_pattern_texts(cases, Match::anywhere);
}

TEST(Regex, WhatIsNotRegularIsRefused) {
  const auto expect = [](const char* pattern, const char* first, const char* second) {
    harness::expect_error("regex", first, second, [&] { regex(pattern); });
  };
  expect("(a)\\1", "references", "at byte 5");
  expect("(?P<n>a)(?P=n)", "references", "byte");
  expect("(?=a", "expected )", "byte");
  try {
    regex("(?:(?=.*a.{16}b).)*");
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("too large (in the rule looking ahead)"));
  }
  for (const char* pattern :
       {"(?!a)a", "x(?=a)b", "x(?!)", "(?:a(?=b))+", "a^b", "(a$)b", "x(?=(a$))"}) {
    harness::expect_error("grammar", "no text fits", "", [&] { regex(pattern); });
  }
  expect("(?<=a)b", "only (?:...)", "byte");
  expect("(?<!a)b", "only (?:...)", "byte");
  expect("(?m)a", "only (?:...)", "byte");
  expect("(?i-)a", "only (?:...)", "byte");
  expect("(?i)*a", "nothing to repeat", "byte 4");
  expect("\\p{Foo}", "no property of characters \"Foo\"", "byte 6");
  expect("\\p{^[a]}", "no property of characters", "byte");
  expect("\\p", "no property of characters \"\"", "byte 2");
  expect("[[:alpha:]]", "named classes", "byte");
  expect("a++", "possessive", "byte");
  expect("a**", "repetition of a repetition", "byte");
  expect("*a", "nothing to repeat", "byte");
  expect("(a", "expected )", "byte 2");
  expect("a)", "unexpected )", "byte 1");
  expect("a*^b", "^ behind what can be empty", "byte 3");
  expect("(?:^a|)+", "^ behind what can be empty", "byte 4");
  expect("[b-a]", "no range", "byte");
  expect("[a", "too early", "byte 2");
  expect("a\\", "too early", "byte 2");
  expect("a{3,1}", "at most 1", "byte");
  expect("\\x{}", "hexadecimal", "byte");
}

}  // namespace
}  // namespace rbee::grammar
