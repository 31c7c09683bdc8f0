// Masks against the matcher itself: a token is allowed exactly when its bytes are.
#include <gtest/gtest.h>

#include <random>

#include "rbee/grammar/gbnf.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/regex.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

using testing::some_tokens;
using testing::some_vocabulary;

bool has(const std::vector<uint64_t>& bits, size_t id) {
  return ((bits[id / 64] >> (id % 64)) & 1) != 0;
}

// A walk by allowed tokens; at each step every token of the vocabulary is tried.
void check_walks(const std::shared_ptr<const CompiledGrammar>& grammar, uint32_t seed) {
  const std::vector<std::string> tokens = some_tokens();
  std::mt19937 random(seed);
  for (int walk = 0; walk < 4; ++walk) {
    Matcher matcher(grammar);
    for (int step = 0; step < 40; ++step) {
      std::vector<uint64_t> bits((tokens.size() + 63) / 64);
      int64_t work = INT64_MAX;
      const auto count = matcher.fill(bits, work);
      ASSERT_TRUE(count);
      std::vector<int32_t> allowed;
      for (size_t id = 0; id + 1 < tokens.size(); ++id) {
        Matcher copy = matcher;
        const bool fits = copy.accept(tokens[id]);
        ASSERT_EQ(has(bits, id), fits) << "token '" << tokens[id] << "' at step " << step;
        if (fits) allowed.push_back(static_cast<int32_t>(id));
      }
      ASSERT_EQ(has(bits, tokens.size() - 1), matcher.complete());
      ASSERT_EQ(*count, std::ssize(allowed) + (matcher.complete() ? 1 : 0));
      ASSERT_GT(*count, 0) << "a dead end";
      if (allowed.empty()) break;
      ASSERT_TRUE(matcher.accept_token(allowed[random() % allowed.size()]));
    }
  }
}

std::vector<Grammar> some_grammars() {
  return {
      parse_gbnf("root ::= \"yes\" | \"no\" | \"the \" [a-z]+"),
      parse_gbnf("root ::= \"(\" root \")\" root | [a-c]?"),
      parse_gbnf("root ::= s\ns ::= \"a\" s | \"ab\" s s | \"\""),
      parse_gbnf("root ::= a b c\na ::= \"x\"?\nb ::= (a \",\")*\nc ::= .{0,5} b"),
      {.rules = {{"r", parse_regex("regex", "(the|abc)+[0-9]{2,4}(\\.0)?|\\w* \\S{3}")}},
       .root = 0},
      json_object_grammar(),
      parse_json_schema(R"({"type":"object","properties":{"name":{"type":"string","maxLength":9},
          "ab":{"type":"array","items":{"type":"number"}},"c":{"$ref":"#"}},
          "additionalProperties":{"type":["string","null"]}})"),
      parse_json_schema(R"({"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#"}},
          {"enum":["true",true,12,{"name":"abc"}]}]})"),
  };
}

TEST(TokenMasks, AllowWhatTheMatcherAccepts) {
  uint32_t seed = 1;
  for (const Grammar& grammar : some_grammars()) {
    check_walks(std::make_shared<const CompiledGrammar>(grammar, some_vocabulary()), seed++);
  }
}

TEST(TokenMasks, AreTheSameAfterAllIsForgotten) {
  const Automaton automaton(json_object_grammar());
  const auto vocabulary = some_vocabulary();
  TokenMasks small(automaton, *vocabulary, nullptr, 1), large(automaton, *vocabulary);
  Stacks stacks(automaton);
  std::vector<Place> places;
  stacks.close({automaton.root(), kBottom}, places);
  const size_t words = static_cast<size_t>(vocabulary->size() + 63) / 64;
  bool ended = false;
  for (const char c : std::string(R"({"a": [{"b": [1, 2.5, tru)")) {
    std::vector<uint64_t> some(words), same(words);
    int64_t work = INT64_MAX;
    ASSERT_TRUE(small.add(places, stacks, some, work));
    ASSERT_TRUE(large.add(places, stacks, same, work));
    ASSERT_EQ(some, same);
    std::vector<Place> next;
    stacks.step(places, static_cast<uint8_t>(c), next, ended);
    places = next;
    ASSERT_FALSE(places.empty()) << c;
  }
}

TEST(TokenMasks, PreparedAheadAreTheSame) {
  for (const Grammar& grammar : some_grammars()) {
    const auto ahead = std::make_shared<const CompiledGrammar>(grammar, some_vocabulary());
    ahead->masks().prepare(1 << 30);
    check_walks(ahead, 77);
  }
}

TEST(Matcher, EndTokensAreAcceptedAtTheEndOnly) {
  const auto grammar = testing::compile(parse_gbnf("root ::= \"ab\" \"c\"?"));
  const auto end = static_cast<int32_t>(some_tokens().size()) - 1;
  Matcher matcher(grammar);
  EXPECT_FALSE(matcher.accept_token(end));
  EXPECT_FALSE(matcher.accept("x"));
  EXPECT_TRUE(matcher.accept("ab"));  // what was refused has changed nothing
  EXPECT_TRUE(matcher.accept_token(end));
  EXPECT_TRUE(matcher.complete());
  EXPECT_TRUE(matcher.can_go_on());
  EXPECT_FALSE(matcher.accept_token(-1));
  EXPECT_FALSE(matcher.accept_token(100000));
  EXPECT_TRUE(matcher.accept("c"));
  EXPECT_FALSE(matcher.can_go_on());
}

}  // namespace
}  // namespace rbee::grammar
