// Answers of a tiny random model under a grammar, a schema or a pattern.
#include "rbee/engine/text/form/constraint.h"

#include <gmock/gmock.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>

#include "rbee/core/cat.h"
#include "rbee/grammar/gbnf.h"
#include "tests/support/data_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/sanitized.h"
#include "tests/units/engine/tiny_engine.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::engine {
namespace {

using Kind = Constraint::Kind;

TextRequest constrained(Kind kind, std::string text, int32_t max_tokens = 200) {
  TextRequest request = greedy("abc", max_tokens);
  request.sampling.temperature = 2;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1;
  request.constraint.kind = kind;
  if (kind == Kind::choice) {
    request.constraint.choices = {"yes", "no", "maybe so"};
  } else {
    request.constraint.text = std::move(text);
  }
  return request;
}

constexpr const char* kPerson =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},
        "age":{"type":"integer","minimum":0,"maximum":150},
        "kind":{"enum":["a","b"]}},"required":["name","age","kind"],"additionalProperties":false})";

void expect_person(const std::string& text) {
  const auto value = nlohmann::json::parse(text);
  ASSERT_EQ(value.size(), 3u) << text;
  EXPECT_LE(value.at("age").get<int>(), 150);
  EXPECT_LE(value.at("name").get<std::string>().size(), 8u);
  EXPECT_THAT(value.at("kind").get<std::string>(), ::testing::AnyOf("a", "b"));
}

TEST(Constraint, AnswersHaveTheFormAtEveryTemperature) {
  const auto engine = make_llm_engine(tiny_model(512), {});
  for (const float temperature : {0.0f, 0.7f, 2.0f}) {
    for (const int32_t top_k : {0, 5}) {
      TextRequest request = constrained(Kind::json_schema, kPerson);
      request.sampling.temperature = temperature;
      request.sampling.top_k = top_k;
      const auto sink = answer(*engine, request);
      ASSERT_TRUE(sink->finished) << (sink->failed ? sink->failed->message : "");
      EXPECT_EQ(sink->finished->reason, StopReason::eos);
      EXPECT_EQ(sink->finished->complete, true);
      expect_person(sink->text);
    }
  }
  const auto choice = answer(*engine, constrained(Kind::choice, ""));
  EXPECT_THAT(choice->text, ::testing::AnyOf("yes", "no", "maybe so"));
  const auto regex = answer(*engine, constrained(Kind::regex, "[a-f]{3}-\\d+"));
  EXPECT_EQ(regex->text.find_first_not_of("abcdef"), 3u) << regex->text;
  EXPECT_EQ(regex->text[3], '-');
  EXPECT_EQ(regex->text.find_first_not_of("0123456789", 4), std::string::npos) << regex->text;
  const auto gbnf =
      answer(*engine, constrained(Kind::grammar, "root ::= \"<\" [a-z]{2,4} (\",\" root)? \">\""));
  EXPECT_TRUE(gbnf->text.starts_with('<') && gbnf->text.ends_with('>')) << gbnf->text;
}

// The keywords that OpenAI documents for strict schemas, each in a property.
TEST(Constraint, EveryKeywordOfStrictSchemas) {
  using nlohmann::json;
  struct Case {
    const char* schema;
    std::function<bool(const json&)> holds;
  };
  const auto matches = [](const char* pattern) {
    return [pattern](const json& v) {
      return std::regex_match(v.get<std::string>(), std::regex(pattern));
    };
  };
  const Case cases[] = {
      {R"({"type":["string","null"],"maxLength":9})",
       [](const json& v) { return v.is_string() || v.is_null(); }},
      {R"({"type":"boolean"})", [](const json& v) { return v.is_boolean(); }},
      {R"({"type":"integer","minimum":-3,"exclusiveMaximum":5})",
       [](const json& v) { return v.is_number_integer() && v >= -3 && v < 5; }},
      {R"({"type":"number","exclusiveMinimum":0,"maximum":2})",
       [](const json& v) { return v > 0 && v <= 2; }},
      {R"({"type":"number","minimum":-0.25,"exclusiveMaximum":1.5})",
       [](const json& v) { return v >= -0.25 && v < 1.5; }},
      {R"({"type":"integer","multipleOf":7})",
       [](const json& v) { return v.get<int64_t>() % 7 == 0; }},
      {R"({"enum":["x",1,null]})", [](const json& v) { return v == "x" || v == 1 || v.is_null(); }},
      {R"({"const":{"a":[true]}})", [](const json& v) { return v.at("a").at(0) == true; }},
      {R"({"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":3})",
       [](const json& v) { return v.size() == 2 || v.size() == 3; }},
      {R"({"anyOf":[{"type":"null"},{"type":"object","properties":{"t":{"const":1}},
          "required":["t"],"additionalProperties":false}]})",
       [](const json& v) { return v.is_null() || v.at("t") == 1; }},
      {R"({"$ref":"#/$defs/node"})",
       [](const json& v) { return v.size() == 1 && v.contains("next"); }},
      {R"({"type":"string","pattern":"^[ab]{2,3}$"})", matches("[ab]{2,3}")},
      {R"({"type":"string","format":"date"})", matches("\\d{4}-\\d\\d-\\d\\d")},
      {R"({"type":"string","format":"time"})", matches("\\d\\d:\\d\\d:.*")},
      {R"({"type":"string","format":"date-time"})", matches("\\d{4}-\\d\\d-\\d\\d[Tt ].*")},
      {R"({"type":"string","format":"duration"})", matches("P.+")},
      {R"({"type":"string","format":"email"})", matches("[^@]+@[^@]+")},
      {R"({"type":"string","format":"hostname"})", matches("[A-Za-z0-9.-]+")},
      {R"({"type":"string","format":"ipv4"})", matches("\\d+(\\.\\d+){3}")},
      {R"({"type":"string","format":"ipv6"})", matches("[0-9a-fA-F:.]+")},
      {R"({"type":"string","format":"uuid"})", matches("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-.{12}")},
  };
  const auto engine = make_llm_engine(tiny_model(512), {});
  for (const Case& c : cases) {
    const std::string schema =
        cat(R"({"type":"object","properties":{"v":)", c.schema,
            R"(},"required":["v"],"additionalProperties":false,"$defs":{"node":{"type":"object",
            "properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}},
            "required":["next"],"additionalProperties":false}}})");
    TextRequest request = constrained(Kind::json_schema, schema, 400);
    request.sampling.temperature = 1;
    const auto sink = answer(*engine, request);
    ASSERT_TRUE(sink->finished) << c.schema << (sink->failed ? sink->failed->message : "");
    ASSERT_EQ(sink->finished->complete, true) << c.schema << sink->text;
    const json value = json::parse(sink->text);
    EXPECT_EQ(value.size(), 1u) << c.schema << sink->text;
    EXPECT_TRUE(c.holds(value.at("v"))) << c.schema << sink->text;
  }
}

TEST(Constraint, WhatIsCutOffSaysSo) {
  const auto engine = make_llm_engine(tiny_model(512), {});
  const auto sink = answer(*engine, constrained(Kind::json_schema, kPerson, 4));
  ASSERT_TRUE(sink->finished);
  EXPECT_EQ(sink->finished->reason, StopReason::max_tokens);
  EXPECT_EQ(sink->finished->complete, false);
  EXPECT_EQ(sink->text.front(), '{');
  EXPECT_FALSE(answer(*engine, greedy("abc"))->finished->complete.has_value());
}

TEST(Constraint, EndTokensEndWhatIsComplete) {
  // Only the end token can follow three letters; before, it cannot come.
  TextModel model = tiny_model(512);
  model.end_tokens = {1};
  const auto engine = make_llm_engine(std::move(model), {});
  int ended = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    TextRequest request = constrained(Kind::regex, "[a-z]{3}(x{30})?");
    request.sampling.seed = seed;
    const auto sink = answer(*engine, request);
    ASSERT_TRUE(sink->finished);
    EXPECT_EQ(sink->finished->complete, true);
    EXPECT_TRUE(sink->text.size() == 3 || sink->text.size() == 33) << sink->text;
    ended += sink->text.size() == 3;
  }
  EXPECT_GT(ended, 0);
}

TEST(Constraint, AnswersInABatchKeepTheirFormThroughPreemptions) {
  // Enough blocks for two long answers at once.
  const auto engine = make_llm_engine(
      tiny_model(128), {.max_running = 8, .step_tokens = 16, .cache_tokens = 160, .block_size = 8});
  std::vector<std::shared_ptr<Recorder>> persons, others;
  for (int i = 0; i < 6; ++i) {
    TextRequest request = constrained(Kind::json_schema, kPerson);
    request.sampling.seed = static_cast<uint64_t>(i);
    persons.push_back(submit(*engine, request, cat("person", i)));
    others.push_back(submit(*engine, greedy("some words here", 60), cat("other", i)));
  }
  for (const auto& sink : persons) {
    sink->wait();
    ASSERT_TRUE(sink->finished) << (sink->failed ? sink->failed->message : "");
    expect_person(sink->text);
  }
  for (const auto& sink : others) {
    sink->wait();
    EXPECT_TRUE(sink->finished);
  }
  EXPECT_GT(engine->stats().preemptions, 0u);
}

TEST(Constraint, TheFormWinsOverBans) {
  const auto engine = make_llm_engine(tiny_model(512), {});
  TextRequest request = constrained(Kind::regex, "[ab]{4}");
  request.sampling.bad_words = {"a", "b", "aa", "ab", "ba", "bb"};
  request.sampling.min_tokens = 50;
  const auto sink = answer(*engine, request);
  ASSERT_TRUE(sink->finished) << sink->failed->message;
  EXPECT_EQ(sink->text.size(), 4u);
  EXPECT_EQ(sink->text.find_first_not_of("ab"), std::string::npos) << sink->text;
}

// GBNF's <name> and <[id]> are one token, and !<name> and !<[id]> one of all others, as in
// llama.cpp.
TEST(Constraint, GrammarsNameTokens) {
  std::ifstream file(test::data_folder() + "/units/text/data/qwen2.json");
  const std::string json((std::istreambuf_iterator<char>(file)), {});
  const auto tokenizer = text::tokenizer_from_json(json);
  const text::TokenId end = tokenizer->find("<|im_end|>").value();
  const text::TokenId a = tokenizer->find("a").value();
  ConstraintCompiler compiler(*tokenizer, {end}, tokenizer->vocab_size(), 1 << 20);
  const auto compile = [&](const std::string& text) {
    AnswerForm form;
    form.constraint = {.kind = Kind::grammar, .text = text, .choices = {}};
    return compiler.compile(form);
  };
  const text::TokenId start = tokenizer->find("<|im_start|>").value();
  const text::TokenId other = tokenizer->find("<|endoftext|>").value();
  const text::TokenId x = tokenizer->find("x").value(), y = tokenizer->find("y").value();
  const auto reads = [&](const std::string& text, const std::vector<text::TokenId>& ids) {
    grammar::Matcher matcher(compile(text));
    const bool all = std::ranges::all_of(ids, [&](auto id) { return matcher.accept_token(id); });
    return all && matcher.complete();
  };
  const std::string asked = cat("root ::= <|im_start|> <[", a, "]>+");
  EXPECT_TRUE(reads(asked, {start, a, a}));
  EXPECT_FALSE(reads(asked, {start, a, x}));
  EXPECT_FALSE(reads(asked, {a, a}));
  const std::string others = "root ::= \"x\" !<|im_start|>*";
  EXPECT_TRUE(reads(others, {x, y, other, a}));
  EXPECT_FALSE(reads(others, {x, start}));
  // Of a token that is not special, and of one that ends the answer, which no other text has.
  const std::string no_a = cat("root ::= !<[", a, "]>{2} <[", a, "]>");
  EXPECT_TRUE(reads(no_a, {x, start, a}));
  EXPECT_FALSE(reads(no_a, {x, a, a}));
  EXPECT_TRUE(reads("root ::= !<|im_end|>{2}", {a, start}));
  // The byte that marks special tokens' names cannot be drawn as a token of its own.
  if (const auto mark = tokenizer->find("\u00ff")) {
    EXPECT_EQ(tokenizer->piece(*mark), "\xFF");
    EXPECT_FALSE(reads("root ::= <|im_start|>", {*mark}));
    EXPECT_TRUE(compile("root ::= \"x\"")->vocabulary().bytes(*mark).empty());
  } else {
    ADD_FAILURE() << "the vocabulary has no such byte";
  }
  const auto refuse = [&](const std::string& token, const char* what) {
    harness::expect_error("grammar", what, "", [&] { compile("root ::= " + token); });
  };
  refuse("<|im_end|>", "ends the answer");
  refuse("<nothing>", "has no token <nothing>");
  refuse("<[99999999]>", "is not from 0 to ");
  refuse("<[-1]>", "is not from 0 to ");
  refuse("<[x]>", "is not from 0 to ");
  refuse("<a", "has no >");
}

TEST(Constraint, FaultsAreRefusedAtTheDoor) {
  const auto engine = make_llm_engine(tiny_model(), {});
  const auto refuse = [&](Kind kind, const char* text, const char* op, const char* what) {
    harness::expect_error(op, what, "", [&] { submit(*engine, constrained(kind, text)); });
  };
  refuse(Kind::json_schema, R"({"properties":{"a":{"type":"x"}}})", "json_schema",
         "#/properties/a");
  refuse(Kind::regex, "(a", "regex", "expected )");
  refuse(Kind::grammar, "root ::= x", "grammar", "not defined");
  TextRequest none = constrained(Kind::choice, "");
  none.constraint.choices.clear();
  harness::expect_error("choice", "0 texts", "", [&] { submit(*engine, none); });
  none.constraint = {.kind = Kind::grammar, .text = std::string(1 << 19, ' '), .choices = {}};
  harness::expect_error("constraint", "bytes", "", [&] { submit(*engine, none); });
  EXPECT_TRUE(answer(*engine, greedy("abc", 3))->finished);
}

TEST(Constraint, TextsThatNoTokenSpellsFailAlone) {
  const auto engine = make_llm_engine(tiny_model(), {});
  // The tiny vocabulary is ASCII.
  EXPECT_THROW(submit(*engine, constrained(Kind::regex, "\xC3\xA9")), Error);
  const auto sink = answer(*engine, constrained(Kind::regex, "ab\xC3\xA9"));
  ASSERT_TRUE(sink->failed);
  EXPECT_EQ(sink->failed->code, Code::unsupported);
  EXPECT_THAT(sink->failed->message, ::testing::HasSubstr("no token"));
  EXPECT_TRUE(answer(*engine, greedy("abc", 3))->finished);
}

// A step allows a fixed amount of work for all answers; an ambiguous text waits for its turn.
TEST(ConstrainedText, ReadingIsPaidForBeforeTheNextMask) {
  const auto grammar = grammar::testing::compile(
      grammar::parse_gbnf("root ::= p\np ::= [a-z] p [a-z] | [a-z] p | [a-z]"));
  constexpr int64_t kMuch = int64_t{1} << 40;
  ConstrainedText text(grammar);
  grammar::Matcher matcher(grammar);
  std::vector<uint64_t> bits((static_cast<size_t>(grammar->vocabulary().size()) + 63) / 64);
  for (int i = 0; i < 40; ++i) {
    const int64_t before = matcher.visited();
    ASSERT_TRUE(matcher.accept_token('a'));
    text.accept('a');
    const int64_t visited = matcher.visited() - before;
    int64_t work = kMuch;
    ASSERT_TRUE(matcher.fill(bits, work));  // later calls reuse this result
    work = kMuch;
    ASSERT_TRUE(matcher.fill(bits, work));
    const int64_t of_mask = kMuch - work;
    int64_t little = visited;
    EXPECT_FALSE(text.find_mask(little));
    EXPECT_EQ(little, 0);
    work = kMuch;
    ASSERT_TRUE(text.find_mask(work));
    EXPECT_GE(kMuch - work, of_mask + 10 * visited);
    EXPECT_LE(kMuch - work, of_mask + 40 * visited);
  }
}

TEST(ConstraintCompiler, GrammarsAreKept) {
  const auto tokenizer = tiny_tokenizer();
  ConstraintCompiler compiler(*tokenizer, {1}, test::kTinyVocab, 200'000);
  const auto of = [](int i) {
    return AnswerForm{
        .constraint = {.kind = Kind::regex, .text = cat("a{", i, "}"), .choices = {}}};
  };
  const auto first = compiler.compile(of(1));
  EXPECT_EQ(compiler.compile(of(1)), first);
  EXPECT_NE(compiler.compile(of(2)), first);
  for (int i = 3; i < 100; ++i) compiler.compile(of(i));
  EXPECT_NE(compiler.compile(of(1)), first);  // unused for long, so it was dropped
  EXPECT_EQ(compiler.compile({}), nullptr);

  const std::weak_ptr kept = compiler.compile(of(1)), followed = compiler.compile(of(2));
  const auto answer = followed.lock();
  compiler.forget();
  EXPECT_TRUE(kept.expired());
  EXPECT_FALSE(followed.expired());
  EXPECT_NE(compiler.compile(of(2)), answer);
}

// A grammar that an answer used is freed after the engine has been idle for a while.
TEST(Constraint, GrammarsGoWhileNothingRuns) {
#ifndef __GLIBC__
  GTEST_SKIP() << "another allocator";
#else
  if (testing::kSanitized) GTEST_SKIP() << "another allocator";
  const auto engine =
      make_llm_engine(tiny_model(512), {.grammar_rest = std::chrono::milliseconds(50)});
  const auto in_use = [] { return static_cast<int64_t>(mallinfo2().uordblks); };
  answer(*engine, constrained(Kind::regex, "a{1,3}"));  // makes the parts that all grammars share
  const int64_t before = in_use();
  const auto sink = submit(*engine, constrained(Kind::regex, "([a-z]{1,100}[0-9]{1,100}){20}", 2));
  const int64_t most = in_use();
  sink->wait();
  const int64_t grammar = most - before;
  ASSERT_GT(grammar, 100'000);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (in_use() > most - grammar / 2 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LE(in_use(), most - grammar / 2);
#endif
}

}  // namespace
}  // namespace rbee::engine
