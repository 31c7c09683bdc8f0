// The cost of grammars; compiling must stop if its request is cancelled.
#include "rbee/grammar/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "rbee/core/cancel.h"
#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/grammar/gbnf.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/regex.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

using testing::compile;

Grammar regex(const std::string& text) {
  return {.rules = {{"regex", parse_regex("regex", text)}}, .root = 0};
}

std::string times(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// A class of many letters repeated, then many letters.
std::string letters_behind_a_class(int inside, int behind) {
  std::string out = "[";
  for (int i = 0; i < inside; ++i) out += static_cast<char>('a' + i % 26);
  out += "]*";
  for (int i = 0; i < behind; ++i) out += static_cast<char>('a' + (i * 7) % 26);
  return out;
}

std::string odd_bytes() {
  std::string out;
  for (const char high : std::string("01234567")) {
    for (const char low : std::string("13579bdf")) out += cat("\\x", high, low);
  }
  return "[" + out + "]";
}

struct Hostile {
  const char* name;
  std::function<Grammar()> make;
};

std::vector<Hostile> hostile() {
  std::string optionals = "root ::=";
  for (int i = 0; i < 4000; ++i) optionals += cat(" r", i);
  for (int i = 0; i < 4000; ++i) optionals += cat("\nr", i, " ::= \"a\" | \"\"");
  std::string chain = "root ::= r0";
  for (int i = 0; i < 4000; ++i) chain += cat("\nr", i, " ::= r", i + 1, "?");
  chain += "\nr4000 ::= \"a\"";
  const std::string ahead = "^" + times("(?=.*[ab]{20})(?!.*ba{9}c)", 12) + ".*$";
  return {
      {"a class and letters", [] { return regex(letters_behind_a_class(100'000, 20'000)); }},
      {"ways", [] { return regex("(" + times("a|b|c|", 8000) + "d)*" + times("abc", 1000)); }},
      {"odd bytes", [] { return regex(cat(odd_bytes(), "{99990}", odd_bytes(), "{70000}")); }},
      {"odd bytes written out", [] { return regex(times(cat(odd_bytes(), "{250}a"), 300)); }},
      {"the last 30", [] { return parse_gbnf("root ::= [ab]* \"a\" [ab]{30}"); }},
      {"rules that may be empty", [=] { return parse_gbnf(optionals); }},
      {"a chain of rules", [=] { return parse_gbnf(chain); }},
      {"looking ahead", [=] { return regex(ahead); }},
      {"far bounds", [] { return parse_gbnf("root ::= ([a-z]{1,999} [a-z0-9]{1,999}){1,999}"); }},
  };
}

TEST(Budget, BoundsHostileGrammars) {
  for (const Hostile& one : hostile()) {
    GrammarMemory memory;
    {
      const Budget budget(kGrammarBudget, &memory);
      try {
        const auto made = compile(one.make());
        EXPECT_LT(made->bytes(), size_t{32} << 20) << one.name;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unsupported) << one.name << error.what();
      }
      // The last charge may be as large as one state's edges.
      EXPECT_LE(budget.spent().work, kGrammarBudget.work + 1'000'000) << one.name;
      EXPECT_LE(budget.spent().bytes, kGrammarBudget.bytes + (1 << 20)) << one.name;
    }
    EXPECT_EQ(memory.used, 0) << one.name;
  }
}

std::string listed(int count, const std::function<std::string(int)>& one) {
  std::string out;
  for (int i = 0; i < count; ++i) out += cat(i == 0 ? "" : ",", one(i));
  return out;
}

// Each of these copies or compares much more than it says.
TEST(Budget, SchemasAreBilledForWhatTheyBecome) {
  const auto needs = [](int i) { return cat(R"({"required":["q)", i, R"("]})"); };
  const auto names = [](const char* with) {
    return [with](int i) { return cat(R"("r)", i, with, '"'); };
  };
  const auto ints = [](int i) {
    return cat(R"({"type":"integer","minimum":)", 3 * i, R"(,"maximum":)", 3 * i + 5, "}");
  };
  const std::string text = R"({"description":")" + times("x", 200'000) + R"("})";
  const std::string long_name = times("n", 100'000);
  const std::vector<std::pair<const char*, std::string>> schemas = {
      {"a long text in each way", cat(R"({"type":"object","properties":{"z":)", text,
                                      R"(},"anyOf":[)", listed(1000, needs), "]}")},
      {"alternatives apart from each other", cat(R"({"oneOf":[)", listed(150, ints), "]}")},
      {"alternatives that all fail",
       cat(R"({"not":{"not":{"anyOf":[)", listed(5000, needs), "]}}}")},
      {"names put together", cat(R"({"allOf":[{"required":[)", listed(20'000, names("a")),
                                 R"(]},{"required":[)", listed(20'000, names("b")), "]}]}")},
      {"rules below a long name",
       cat(R"({"properties":{")", long_name, R"(":{"anyOf":[)", listed(2000, ints), "]}}}")},
  };
  for (const auto& [name, schema] : schemas) {
    const Budget budget({.work = 3'000'000, .bytes = 16 << 20});
    try {
      parse_json_schema(schema);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::AnyOf(::testing::HasSubstr("making it takes too much"),
                                                 ::testing::HasSubstr("too many ways")))
          << name;
    }
  }
}

TEST(Budget, LimitsWorkAndMemory) {
  const auto refusal = [](Cost limit) -> std::string {
    const Budget budget(limit);
    try {
      compile(regex("(" + times("ab|cd|", 50) + "x)*abcdefgh"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({.work = 1000, .bytes = 1 << 30}), ::testing::HasSubstr("too much work"));
  EXPECT_THAT(refusal({.work = 1 << 30, .bytes = 2000}), ::testing::HasSubstr("too much memory"));
  EXPECT_EQ(refusal({.work = 1 << 30, .bytes = 1 << 30}), "");
}

TEST(Budget, PartsOfExpressionsAreBilled) {
  nlohmann::json properties;
  for (int64_t i = 0; i < 1000; ++i) {
    properties[cat("n", i)] = {{"type", "integer"}, {"maximum", 8765432109876543210 - 977 * i}};
  }
  const std::string schema = nlohmann::json({{"properties", properties}}).dump();
  const Budget budget({.work = 1'000'000, .bytes = 1 << 30});
  EXPECT_THROW(parse_json_schema(schema), Error);
}

TEST(Budget, StringsAndNumbersThatAreAskedForAgainCostNothing) {
  const auto work = [](int count) {
    const Budget budget;
    nlohmann::json properties;
    for (int i = 0; i < count; ++i) {
      properties[cat("text ", i)] = {{"type", "string"}, {"format", "email"}, {"title", cat(i)}};
      properties[cat("mail ", i)] = {{"format", "email"}, {"maxLength", 100 + i}};
      properties[cat("pattern ", i)] = {
          {"pattern", "^[a-z]+@"}, {"maxLength", 900}, {"default", i}};
      properties[cat("number ", i)] = {
          {"anyOf", {{{"type", "number"}, {"minimum", 0.25}}, {{"type", "null"}}}}};
    }
    compile(parse_json_schema(nlohmann::json({{"properties", properties}}).dump()));
    return budget.spent().work;
  };
  EXPECT_LT(work(60), 6 * work(1));
}

TEST(Budget, InnerOnesTakeFromOuterOnes) {
  const Budget outer;
  {
    const Budget inner({.work = 100, .bytes = 100});
    bill({.work = 60, .bytes = 7});
    EXPECT_THROW(bill({.work = 60}), Error);
  }
  EXPECT_EQ(outer.spent().work, 120);
  EXPECT_EQ(outer.spent().bytes, 7);
}

TEST(Budget, EndsWhereNobodyWaits) {
  for (const Hostile& one : hostile()) {
    const std::atomic<bool> left = true;
    const CancelScope scope(left);
    const Budget budget;
    try {
      compile(one.make());
      ADD_FAILURE() << one.name << " was made";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::cancelled) << one.name << error.what();
    }
    EXPECT_LT(budget.spent().work, 1'000'000) << one.name;
  }
}

TEST(Budget, EndsSoonAfterAClientLeaves) {
  std::atomic<bool> left = false;
  Code code = Code::internal;
  {
    const CancelScope scope(left);
    const Budget budget({.work = INT64_MAX, .bytes = INT64_MAX});
    std::thread client([&] { left = true; });
    try {
      while (true) compile(regex("(" + times("ab|cd|", 500) + "x)*" + times("abcd", 100)));
    } catch (const Error& error) {
      code = error.code();
    }
    client.join();
  }
  EXPECT_EQ(code, Code::cancelled);
  EXPECT_FALSE(is_cancelled());  // the scope is over
}

TEST(Budget, MasksComeToTheirEndWithTheLeastWork) {
  const Grammar grammar = parse_gbnf("root ::= (item \"|\")*\nitem ::= [^|]+ [a-z]{0,60}");
  Matcher slow(compile(grammar)), fast(compile(grammar));
  std::vector<uint64_t> whole((testing::some_tokens().size() + 63) / 64), slowly = whole;
  for (const char* text : {"{", "\"", "na", "me\"", "|", "[[1", "the"}) {
    ASSERT_TRUE(slow.accept(text));
    ASSERT_TRUE(fast.accept(text));
    bool found = false;
    for (int turns = 0; !found; ++turns) {
      int64_t work = 1;
      found = slow.fill(slowly, work).has_value();
      ASSERT_LT(turns, 100'000);
    }
    int64_t work = INT64_MAX;
    ASSERT_TRUE(fast.fill(whole, work));
    EXPECT_EQ(slowly, whole) << text;
  }
}

TEST(Budget, TokensThatAreReadInTooManyWaysEndTheText) {
  Matcher matcher(compile(parse_gbnf("root ::= s\ns ::= [a-z] s? [a-z]?")));
  const auto read_on = [&] {
    for (int i = 0; i < 30; ++i) matcher.accept(std::string(64, 'a'));
  };
  try {
    read_on();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("reading a token takes more than"));
  }
}

}  // namespace
}  // namespace rbee::grammar
