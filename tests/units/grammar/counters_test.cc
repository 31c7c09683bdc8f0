// Counted repetitions and lengths, compared with the same written out.
#include <gtest/gtest.h>

#include <random>

#include "rbee/core/cat.h"
#include "rbee/grammar/gbnf.h"
#include "rbee/grammar/json_rules.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/regex.h"
#include "rbee/grammar/text_lengths.h"
#include "rbee/grammar/text_set.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

using testing::compile;
using testing::matches;
using testing::some_tokens;

using Compiled = std::shared_ptr<const CompiledGrammar>;

struct Bounds {
  int64_t min, max;
};

// The repetition without repeat(), so without a counter.
ExprPtr written_out(const ExprPtr& part, int64_t min, int64_t max) {
  ExprPtr rest = max == kUnlimited ? repeat(part, 0, kUnlimited) : sequence({});
  for (int64_t i = min; i < max; ++i) rest = choice({sequence({}), sequence({part, rest})});
  std::vector<ExprPtr> parts(static_cast<size_t>(min), part);
  parts.push_back(rest);
  return sequence(std::move(parts));
}

Compiled compile_body(ExprPtr body) {
  return compile({.rules = {{"root", std::move(body)}}, .root = 0});
}

std::vector<uint64_t> mask_of(Matcher& matcher) {
  std::vector<uint64_t> bits((some_tokens().size() + 63) / 64);
  int64_t work = INT64_MAX;
  EXPECT_TRUE(matcher.fill(bits, work));
  return bits;
}

// A walk along allowed tokens, to the end or for some steps.
void expect_alike(const Compiled& counted, const Compiled& copied, uint32_t seed, int steps = 700) {
  std::mt19937 random(seed);
  const std::vector<std::string> tokens = some_tokens();
  Matcher one(counted), other(copied);
  std::string text;
  for (int step = 0; step < steps; ++step) {
    const std::vector<uint64_t> mask = mask_of(one);
    ASSERT_EQ(mask, mask_of(other)) << "seed " << seed << " after " << text;
    ASSERT_EQ(one.complete(), other.complete());
    ASSERT_EQ(one.can_go_on(), other.can_go_on());
    std::vector<int32_t> allowed;
    for (size_t id = 0; id + 1 < tokens.size(); ++id) {
      if (((mask[id / 64] >> (id % 64)) & 1) != 0) allowed.push_back(static_cast<int32_t>(id));
    }
    if (allowed.empty()) return;
    const int32_t id = allowed[random() % allowed.size()];
    ASSERT_TRUE(one.accept_token(id));
    ASSERT_TRUE(other.accept_token(id));
    text += tokens[static_cast<size_t>(id)];
  }
}

ExprPtr any_of(const char* letters) {
  std::vector<CharRange> ranges;
  for (const char* c = letters; *c != 0; ++c) {
    ranges.push_back({static_cast<char32_t>(*c), static_cast<char32_t>(*c)});
  }
  return chars(std::move(ranges));
}

std::vector<ExprPtr> some_parts() {
  return {
      any_of("abc"),
      literal("12"),
      choice({literal("the"), any_of("ab")}),
      sequence({any_of("a"), optional(any_of("b"))}),
      optional(any_of("ab")),
      repeat(any_of("a "), 0, 2),
      choice({chars({{0x20, 0x10FFFF}}), literal("\n")}),
      sequence({any_of("a"), repeat(literal("b"), 0, kUnlimited)}),
  };
}

TEST(Counters, ReadWhatCopiesRead) {
  uint32_t seed = 1;
  for (const ExprPtr& part : some_parts()) {
    for (const Bounds& times :
         {Bounds{0, 400}, Bounds{390, 400}, Bounds{400, 400}, Bounds{301, -1}, Bounds{7, 350}}) {
      const auto of = [&](auto repeated) {
        return compile_body(
            sequence({literal("{\""), repeated(part, times.min, times.max), literal("\"}")}));
      };
      const Compiled counted = of(repeat), copied = of(written_out);
      EXPECT_LT(counted->automaton().size(), copied->automaton().size() / 5);
      expect_alike(counted, copied, seed++);
    }
  }
}

TEST(Counters, StandBesideEachOtherAndInEachOther) {
  // Its many states keep the number of counters small.
  const ExprPtr a = choice({any_of("ab"), literal("xyxyxyxyxyxyxyxy")});
  const ExprPtr b = choice({any_of("bc "), literal("zwzwzwzwzwzwzwzw")});
  const auto of = [&](auto repeated) {
    const ExprPtr inner = sequence({repeated(a, 1, 20), literal(",")});
    return std::vector<Compiled>{
        compile_body(sequence({repeated(a, 2, 22), repeated(b, 0, 20), literal("\"")})),
        compile_body(choice({repeated(a, 0, 30), sequence({repeated(b, 5, 25), a})})),
        compile_body(repeated(choice({literal("ba"), a}), 3, 25)),
        compile_body(sequence({inner, inner, repeat(a, 1, 3)})),
        compile_body(repeated(inner, 2, 9)),
    };
  };
  const std::vector<Compiled> counted = of(repeat), copied = of(written_out);
  for (size_t i = 0; i < counted.size(); ++i) {
    for (uint32_t seed = 0; seed < 3; ++seed) {
      expect_alike(counted[i], copied[i], static_cast<uint32_t>(100 * i) + seed, 400);
    }
  }
}

TEST(Counters, CountEachUseByItself) {
  const auto grammar = compile(parse_gbnf("root ::= (\"[\" [a-z]{0,1000} \"]\"){2,500}"));
  EXPECT_LT(grammar->automaton().size(), 20);
  const std::string full = "[" + std::string(1000, 'x') + "]";
  EXPECT_TRUE(testing::matches(grammar, full + "[]" + full));
  EXPECT_FALSE(testing::matches(grammar, full));
  EXPECT_FALSE(testing::matches(grammar, "[]" + std::string("[") + std::string(1001, 'x') + "]"));
  std::string many;
  for (int i = 0; i < 500; ++i) many += "[ab]";
  EXPECT_TRUE(testing::matches(grammar, many));
  EXPECT_FALSE(testing::matches(grammar, many + "[]"));
}

// Counters that are no longer needed are dropped, so that long texts with many can end.
TEST(Counters, KeepFewFrames) {
  const auto grammar = compile(parse_gbnf("root ::= (\"[\" [a-z]{0,1000} \"]\"){0,5000}"));
  Matcher matcher(grammar);
  const std::string item = "[" + std::string(100, 'x') + "]";
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(matcher.accept(item)) << i;
  EXPECT_TRUE(matcher.complete());
}

TEST(Lengths, ReadWhatProductsRead) {
  const ExprPtr character = JsonRules::string_chars({{0, 0x10FFFF}});
  const char* const patterns[] = {"^[a-z]*$", "ab",           "^(abc|the)*$", "^.{0,5}\\n",
                                  "^(ab)+.?", "[^a-z]$",      "^[ab]{3,9}$",  "^(12|-1|\\\\)*a$",
                                  "^$|abc",   "^(?!.*ab).*$", "\xC3\xA9"};
  uint32_t seed = 1;
  int64_t work = 1 << 30;
  const TextSet all(repeat(character, 0, kUnlimited), "all", work);
  for (const char* pattern : patterns) {
    const TextSet some(parse_regex("regex", pattern, JsonRules::string_chars, Match::anywhere),
                       "pattern", work);
    const TextSet set = TextSet::both(all, some, work);
    for (const Bounds& of :
         {Bounds{0, 40}, Bounds{0, 7}, Bounds{5, 6}, Bounds{30, 33}, Bounds{12, kUnlimited}}) {
      const TextSet bounded(repeat(character, of.min, of.max), "lengths", work);
      const TextSet product = TextSet::both(bounded, some, work);
      const auto lengths = TextLengths::of(set, all, of.max);
      if (!lengths) {  // they come again after several characters, without end
        EXPECT_EQ(of.max, kUnlimited) << pattern;
        continue;
      }
      const auto most = of.max == kUnlimited ? kManyTimes : static_cast<int32_t>(of.max);
      ASSERT_EQ(lengths->fits(0, static_cast<int32_t>(of.min), most), !product.empty()) << pattern;
      if (product.empty()) continue;
      if (lengths->all_within(of.min, of.max)) {
        EXPECT_TRUE(TextSet::without(set, bounded, work).empty()) << pattern;
      }
      const auto quoted = [](const ExprPtr& text) { return compile_body(JsonRules::quoted(text)); };
      for (int walk = 0; walk < 4; ++walk) {
        expect_alike(quoted(set.expr(lengths, of.min, of.max)), quoted(product.expr()), seed++);
      }
    }
  }
}

TEST(Lengths, OfSchemasNeedFewStates) {
  const auto states = [](const char* schema) {
    return compile(parse_json_schema(schema))->automaton().size();
  };
  EXPECT_LT(states(R"({"type":"string","maxLength":5000})"), 100);
  EXPECT_LT(states(R"({"type":"string","minLength":100000,"maxLength":100000})"), 100);
  EXPECT_LT(states(R"({"type":"string","maxLength":4000000})"), 100);
  EXPECT_LT(states(R"({"type":"string","pattern":"foo","maxLength":4000000})"), 300);
  EXPECT_LT(states(R"({"items":{"type":"array","items":{"type":"string","maxLength":4000000},
      "maxItems":4000000},"maxItems":4000000})"),
            6000);
  EXPECT_LT(states(R"({"type":"object","properties":{"a":{"type":"string","maxLength":2000},
      "b":{"type":"string","maxLength":2000},"c":{"type":"string","maxLength":2000}},
      "required":["a","b","c"]})"),
            300);
  EXPECT_LT(states(R"({"type":"string","format":"uri","minLength":1,"maxLength":2083})"), 3000);
  EXPECT_LT(states(R"({"type":"string","format":"uri","maxLength":200})"), 3000);
  EXPECT_LT(states(R"({"type":"string","pattern":"foo","minLength":4,"maxLength":100000})"), 300);
}

// Code generators write 2147483647 (Java's Integer.MAX_VALUE) where they mean no bound.
TEST(Lengths, BoundsThatNoAnswerReachesBoundNothing) {
  for (const char* most : {"100001", "2147483647", "9223372036854775807", "1e300"}) {
    const auto schema = [&](const char* before, const char* after) {
      return compile(parse_json_schema(cat(before, most, after)));
    };
    EXPECT_TRUE(matches(schema(R"({"type":"string","minLength":1,"maxLength":)", "}"), "\"ab\""));
    EXPECT_FALSE(matches(schema(R"({"type":"string","minLength":1,"maxLength":)", "}"), "\"\""));
    const auto pattern = schema(R"({"type":"string","pattern":"^a+$","maxLength":)", "}");
    EXPECT_TRUE(matches(pattern, "\"aaa\""));
    EXPECT_FALSE(matches(pattern, "\"ab\""));
    EXPECT_TRUE(matches(schema(R"({"items":{"type":"null"},"maxItems":)", "}"), "[null,null]"));
    EXPECT_TRUE(matches(schema(R"({"enum":[["b"]],"maxItems":)", "}"), "[\"b\"]"));
    const auto object = schema(R"({"properties":{"a":{"const":1}},"maxProperties":)", "}");
    EXPECT_TRUE(matches(object, R"({"a":1})"));
    EXPECT_FALSE(matches(object, R"({"a":2})"));
  }
  // Whether the longest string may have so many characters.
  const auto may_have = [](const char* most, int hundreds, std::string_view rest) {
    Matcher matcher(compile(parse_json_schema(cat(R"({"type":"string","maxLength":)", most, "}"))));
    EXPECT_TRUE(matcher.accept("\""));
    const std::string hundred(100, 'a');
    for (int i = 0; i < hundreds; ++i) EXPECT_TRUE(matcher.accept(hundred)) << i;
    return matcher.accept(rest) && matcher.accept("\"") && matcher.complete();
  };
  EXPECT_TRUE(may_have("100001", 1000, "a"));
  EXPECT_FALSE(may_have("100001", 1000, "aa"));
  EXPECT_TRUE(may_have("2147483647", 1000, "aa"));
}

}  // namespace
}  // namespace rbee::grammar
