// Masks against the matcher: a token is allowed if and only if its bytes are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/grammar/gbnf.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/regex.h"
#include "rbee/grammar/token_bytes.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

using testing::some_tokens;
using testing::some_vocabulary;

bool has(const std::vector<uint64_t>& bits, size_t id) {
  return ((bits[id / 64] >> (id % 64)) & 1) != 0;
}

// A walk along allowed tokens; each step tries every token of the vocabulary.
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
        const bool fits = copy.accept_token(static_cast<int32_t>(id));
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

// "<[7]>"
ExprPtr by_id(std::string_view name, bool other) {
  const auto id = static_cast<char32_t>(std::stoi(std::string(name.substr(2))));
  return other ? tokens({{0, id - 1}, {id + 1, kMaxTokenId}}) : tokens({{id, id}});
}

std::vector<Grammar> some_grammars() {
  return {
      parse_gbnf("root ::= \"yes\" | \"no\" | \"the \" [a-z]+"),
      parse_gbnf("root ::= \"(\" root \")\" root | [a-c]?"),
      parse_gbnf("root ::= s\ns ::= \"a\" s | \"ab\" s s | \"\""),
      parse_gbnf("root ::= ([a-c] | <[290]> | !<[7]>){2,400} \"(\" | !<[255]> root?", by_id),
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

// As llama.cpp's grammars: one token, whatever its text, and no text that other tokens spell.
TEST(TokenMasks, OfTokensByTheirIds) {
  const std::vector<std::string> texts = some_tokens();
  const auto id_of = [&](std::string_view text) {
    return static_cast<int32_t>(std::ranges::find(texts, text) - texts.begin());
  };
  const int32_t true_id = id_of("true"), end = static_cast<int32_t>(texts.size()) - 1;
  const auto allowed = [&](Matcher& matcher) {
    std::vector<uint64_t> bits((texts.size() + 63) / 64);
    int64_t work = INT64_MAX;
    EXPECT_TRUE(matcher.fill(bits, work));
    std::vector<int32_t> out;
    for (size_t id = 0; id < texts.size(); ++id) {
      if (has(bits, id)) out.push_back(static_cast<int32_t>(id));
    }
    return out;
  };
  const auto make = [](const std::string& text) {
    return testing::compile(parse_gbnf(text, by_id));
  };
  Matcher one(make(cat("root ::= <[", true_id, "]> \"!\"")));
  EXPECT_THAT(allowed(one), ::testing::ElementsAre(true_id));
  EXPECT_FALSE(one.accept("true"));
  ASSERT_TRUE(one.accept_token(true_id));
  EXPECT_THAT(allowed(one), ::testing::ElementsAre('!'));

  Matcher others(make(cat("root ::= !<[", true_id, "]>{2}")));
  std::vector<int32_t> all;
  for (int32_t id = 0; id < end; ++id) {
    if (id != true_id) all.push_back(id);
  }
  EXPECT_EQ(allowed(others), all);
  EXPECT_FALSE(others.accept_token(true_id));
  ASSERT_TRUE(others.accept_token(id_of("false")));
  ASSERT_TRUE(others.accept_token('t'));
  EXPECT_TRUE(others.complete());
  EXPECT_THAT(allowed(others), ::testing::ElementsAre(end));

  // A token can be read both by its text and by its id.
  Matcher both(make("root ::= [a-z]+ \"!\" | !<[0]> \"?\""));
  ASSERT_TRUE(both.accept_token(true_id));
  EXPECT_FALSE(both.complete());
  EXPECT_THAT(allowed(both), ::testing::AllOf(::testing::Contains('!'), ::testing::Contains('?'),
                                              ::testing::Contains('a')));
}

// All ids of a range and no other.
TEST(TokenBytes, OfARangeAreThoseOfItsIds) {
  constexpr int32_t kTop = kMaxTokenId;
  for (const auto& [low, high] : {std::pair{0, kTop},
                                  {5, 5},
                                  {0, 255},
                                  {1, 256},
                                  {255, 65536},
                                  {70'000, 200'123},
                                  {65'536, 131'071},
                                  {kTop, kTop}}) {
    const auto ranges = token_ranges({static_cast<char32_t>(low), static_cast<char32_t>(high)});
    const auto covered = [&](int32_t id) {
      const std::string bytes = token_bytes(id);
      return std::ranges::count_if(ranges, [&](const ByteRanges& range) {
        for (size_t i = 0; i < bytes.size(); ++i) {
          const auto byte = static_cast<uint8_t>(bytes[i]);
          if (byte < range.parts[i].low || byte > range.parts[i].high) return false;
        }
        return range.count == std::ssize(bytes);
      });
    };
    for (int32_t id = 0; id < 300'000; id += id < 70'000 ? 1 : 97) {
      EXPECT_EQ(covered(id), low <= id && id <= high ? 1 : 0) << id << " of " << low << " " << high;
    }
    for (const int32_t id : {low, high}) EXPECT_EQ(covered(id), 1);
    if (low > 0) {
      EXPECT_EQ(covered(low - 1), 0);
    }
    if (high < kTop) {
      EXPECT_EQ(covered(high + 1), 0);
    }
  }
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
    UnfinishedMask of_small, of_large;
    ASSERT_TRUE(small.add(places, stacks, some, of_small, work));
    ASSERT_TRUE(large.add(places, stacks, same, of_large, work));
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

// Every letter may belong to any of the open calls.
Grammar ambiguous() {
  return parse_gbnf("root ::= s\ns ::= [a-zA-Z ,.] s? [a-zA-Z ,.]?");
}

TEST(TokenMasks, AreFoundInSlices) {
  uint32_t slices = 0;
  for (const Grammar& grammar : some_grammars()) {
    const auto whole = testing::compile(grammar), sliced = testing::compile(grammar);
    Matcher one(whole), other(sliced);
    const size_t words = static_cast<size_t>(whole->vocabulary().size() + 63) / 64;
    std::vector<uint64_t> bits(words), same(words);
    int64_t work = INT64_MAX;
    const auto count = one.fill(bits, work);
    ASSERT_TRUE(count);
    std::optional<int64_t> found;
    for (; !found; ++slices) {
      ASSERT_LT(slices, 10'000U);
      int64_t slice = 50;
      found = other.fill(same, slice);
    }
    EXPECT_EQ(*found, *count);
    EXPECT_EQ(same, bits);
  }
  EXPECT_GT(slices, 3 * some_grammars().size());
}

// Known parts of a mask are joined in slices, too, and a copy finds its own mask.
TEST(TokenMasks, TakeNoMoreWorkThanIsGiven) {
  const auto grammar = testing::compile(ambiguous());
  Matcher matcher(grammar);
  std::vector<uint64_t> bits(static_cast<size_t>(grammar->vocabulary().size() + 63) / 64);
  auto same = bits, copied = bits;
  for (int letter = 0; letter < 300; ++letter) ASSERT_TRUE(matcher.accept("a"));
  int64_t work = INT64_MAX;
  const auto count = matcher.fill(bits, work);
  int64_t most = 0;
  int slices = 0;
  std::optional<Matcher> copy;
  for (std::optional<int64_t> found; !found; ++slices) {
    int64_t slice = 1000;
    found = matcher.fill(same, slice);
    most = std::max(most, 1000 - slice);
    if (slices == 3) copy = matcher;
    EXPECT_TRUE(!found || found == count);
  }
  EXPECT_EQ(same, bits);
  EXPECT_GT(slices, 5);
  EXPECT_LT(most, 20'000);
  work = INT64_MAX;
  EXPECT_EQ(copy->fill(copied, work), count);
  EXPECT_EQ(copied, bits);
}

TEST(TokenMasks, TakeNoMoreForDeepStacks) {
  const auto grammar = testing::compile(ambiguous());
  Matcher matcher(grammar);
  std::vector<uint64_t> bits(static_cast<size_t>(grammar->vocabulary().size() + 63) / 64);
  size_t bytes = 0;
  for (int letter = 0; letter < 400; ++letter) {
    ASSERT_TRUE(matcher.accept("a"));
    int64_t work = 1'000'000;
    ASSERT_TRUE(matcher.fill(bits, work)) << letter;
    if (letter == 100) bytes = grammar->masks().bytes();
  }
  EXPECT_EQ(grammar->masks().bytes(), bytes);
}

TEST(TokenMasks, CountTogetherAndGiveBack) {
  const auto memory = std::make_shared<GrammarMemory>();
  {
    const CompiledGrammar one(json_object_grammar(), some_vocabulary(), memory);
    const CompiledGrammar two(json_object_grammar(), some_vocabulary(), memory);
    one.masks().prepare(1 << 20);
    two.masks().prepare(1 << 20);
    EXPECT_GT(one.masks().bytes(), 0U);
    EXPECT_EQ(memory->used, static_cast<int64_t>(one.bytes() + two.bytes()));
    EXPECT_GT(one.bytes(), one.masks().bytes());
  }
  EXPECT_EQ(memory->used, 0);
}

// 400 ways to read a letter, each calling its own rule.
TEST(TokenMasks, EndWhereThePlacesOfAWalkTakeTooMuch) {
  const auto grammar =
      testing::compile(parse_gbnf("root ::= s+\ns ::= [a-z] s? [a-z]? | [a-z]{3,90}"));
  Matcher matcher(grammar);
  std::vector<uint64_t> bits(static_cast<size_t>(grammar->vocabulary().size() + 63) / 64);
  const auto read_on = [&] {
    for (int letter = 0; letter < 5000; ++letter) {
      if (!matcher.accept("a")) return;
      int64_t work = INT64_MAX;
      matcher.fill(bits, work);
      ASSERT_LT(grammar->masks().bytes(), size_t{100} << 20);
    }
  };
  try {
    read_on();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("too ambiguous"));
  }
}

Code refusal_of(const Grammar& grammar) {
  try {
    testing::compile(grammar);
  } catch (const Error& error) {
    return error.code();
  }
  return Code::internal;
}

TEST(Automaton, WorkOnWhatIsKnownIsCounted) {
  // Each letter leads to hundreds of states, all known already.
  std::string ways = "root ::= ([a-y]";
  for (int i = 0; i < 2000; ++i) ways += " | [a-z] [a-z]{" + std::to_string(i % 40) + "} [a-z]*";
  EXPECT_EQ(refusal_of(parse_gbnf(ways + ")* [a-z]{300} [a-z]{300}")), Code::unsupported);
}

TEST(Automaton, EdgesAreCounted) {
  std::string odd;
  for (int byte = 1; byte < 128; byte += 2) {
    odd += cat("\\x", "0123456789abcdef"[byte / 16], "0123456789abcdef"[byte % 16]);
  }
  std::string text;
  for (int i = 0; i < 1000; ++i) text += cat("[", odd, "]{250}x");
  EXPECT_EQ(refusal_of({.rules = {{"regex", parse_regex("regex", text)}}, .root = 0}),
            Code::unsupported);
}

TEST(Automaton, LettersThatComeTwiceAreOne) {
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += static_cast<char>('a' + i % 26);
  const std::string text = cat("[", many, "]*", many.substr(0, 1000));
  const auto grammar =
      testing::compile({.rules = {{"regex", parse_regex("regex", text)}}, .root = 0});
  EXPECT_TRUE(testing::matches(grammar, "zz" + many.substr(0, 1000)));
}

TEST(Matcher, EndTokensAreAcceptedAtTheEndOnly) {
  const auto grammar = testing::compile(parse_gbnf("root ::= \"ab\" \"c\"?"));
  const auto end = static_cast<int32_t>(some_tokens().size()) - 1;
  Matcher matcher(grammar);
  EXPECT_FALSE(matcher.accept_token(end));
  EXPECT_FALSE(matcher.accept("x"));
  EXPECT_TRUE(matcher.accept("ab"));  // the refused token changed nothing
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
