// Random texts under masks alone must satisfy the schema or pattern: Python's `jsonschema` and
// `re`, which share no code with this project, judge them.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/regex.h"
#include "rbee/grammar/text_set.h"
#include "tests/support/data_folder.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::some_tokens;

constexpr int kDraws = 25;
constexpr int kMaxTokens = 3000;
constexpr int kRandomSchemas = 200;
constexpr int kRandomDraws = 8;
constexpr int kRandomPatterns = 400;
constexpr int kSkipped = 77;

// A random text of the grammar; nothing if it has not ended by itself.
std::optional<std::string> draw(const std::shared_ptr<const CompiledGrammar>& grammar,
                                std::mt19937& random) {
  const std::vector<std::string> tokens = some_tokens();
  const size_t quote = '"', bracket = ']';
  Matcher matcher(grammar);
  std::string out;
  for (int step = 0; step < kMaxTokens; ++step) {
    std::vector<uint64_t> bits((tokens.size() + 63) / 64);
    int64_t work = INT64_MAX;
    EXPECT_GT(matcher.fill(bits, work).value_or(0), 0) << "a dead end after " << out;
    std::vector<size_t> allowed;
    for (size_t id = 0; id < tokens.size(); ++id) {
      if (((bits[id / 64] >> (id % 64)) & 1) != 0) allowed.push_back(id);
    }
    if (allowed.empty()) return std::nullopt;
    size_t id = allowed[random() % allowed.size()];
    // Strings and lists end in time.
    for (const size_t closing : {quote, bracket, tokens.size() - 1}) {
      if (random() % 4 == 0 && std::ranges::count(allowed, closing) > 0) id = closing;
    }
    if (id + 1 == tokens.size()) return out;
    EXPECT_TRUE(matcher.accept_token(static_cast<int32_t>(id)));
    out += tokens[id];
    if (!matcher.can_go_on()) return out;
  }
  return std::nullopt;
}

json read(const char* name) {
  std::ifstream file(fs::path(test::data_folder()) / "units/grammar/data" / name);
  return json::parse(file);
}

std::string script(const char* name) {
  return (fs::path(test::data_folder()) / "units/grammar" / name).string();
}

json draw_some(const std::shared_ptr<const CompiledGrammar>& grammar, std::mt19937& random,
               int count) {
  json texts = json::array();
  for (int i = 0; i < count; ++i) {
    if (const auto text = draw(grammar, random)) texts.push_back(*text);
  }
  return texts;
}

// work: in judge.py's format.
void judge(const json& work) {
  const fs::path path = fs::temp_directory_path() / cat("rbee-documents-", getpid());
  std::ofstream(path) << work.dump(-1, ' ', false);
  const int status = std::system(cat("python3 ", script("judge.py"), " ", path.string()).c_str());
  fs::remove(path);
  if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << "Python's jsonschema is not installed";
  EXPECT_EQ(status, 0);
}

// kind: "schema" or "regex".
void judge(const char* kind, const json& rules,
           const std::function<Grammar(const json&)>& to_grammar) {
  json work = json::array();
  std::mt19937 random(4);
  for (const json& rule : rules) {
    json texts = draw_some(testing::compile(to_grammar(rule)), random, kDraws);
    EXPECT_GE(texts.size(), size_t{kDraws} / 2) << rule;
    // A grammar cannot keep free names apart.
    work.push_back({{kind, rule}, {"texts", texts}, {"names_repeat", true}});
  }
  judge(work);
}

TEST(Documents, AreValidUnderTheirSchemas) {
  judge("schema", read("schemas.json"),
        [](const json& rule) { return parse_json_schema(rule.dump()); });
}

TEST(Documents, MatchTheirRegularExpressions) {
  judge("regex", read("regexes.json"), [](const json& rule) {
    return Grammar{.rules = {{"regex", parse_regex("regex", rule.get<std::string>())}}, .root = 0};
  });
}

// The output of a script in this folder for a seed; null without Python.
json made_at_random(const char* name, int seed, int count) {
  const fs::path path = fs::temp_directory_path() / cat("rbee-random-", getpid());
  const std::string command =
      cat("python3 ", script(name), " ", seed, " ", count, " > ", path.string());
  json out;
  if (std::system(command.c_str()) == 0) {
    std::ifstream file(path);
    out = json::parse(file);
  }
  fs::remove(path);
  return out;
}

// The texts that the set contains.
json held(const TextSet& set, const json& texts) {
  json out = json::array();
  for (const json& text : texts) {
    if (set.holds(text.get<std::string>())) out.push_back(text);
  }
  return out;
}

// Nothing if ^ follows a part that may be empty.
std::optional<TextSet> set_of(const std::string& pattern, Match match) {
  int64_t work = 10'000'000;
  try {
    return TextSet(parse_regex("regex", pattern, {}, match), "regex", work);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("^ behind what can be empty"), std::string::npos)
        << pattern << ' ' << error.what();
    return std::nullopt;
  }
}

// All texts of up to five of two characters, judged by Python's `re`.
TEST(Documents, LookingAheadAndAnchorsAreWhatPythonSaysOfRandomPatterns) {
  const json made = made_at_random("random_patterns.py", 5, kRandomPatterns);
  if (made.is_null()) GTEST_SKIP() << "Python is not installed";
  size_t some = 0, refused = 0;
  for (const json& one : made.at("patterns")) {
    const auto pattern = one.at("pattern").get<std::string>();
    for (const auto& [name, match] :
         {std::pair{"whole", Match::whole}, {"anywhere", Match::anywhere}}) {
      const std::optional<TextSet> set = set_of(pattern, match);
      refused += set ? 0 : 1;
      if (!set) continue;
      EXPECT_EQ(held(*set, made.at("texts")), one.at(name)) << pattern << ' ' << name;
      some += one.at(name).empty() ? 0 : 1;
    }
  }
  EXPECT_GE(some, size_t{kRandomPatterns} / 2);
  EXPECT_LE(refused, size_t{kRandomPatterns} / 4);
}

// Combines keywords at random; many such schemas are refused, or no value is valid.
TEST(Documents, AreValidUnderRandomSchemas) {
  const json schemas = made_at_random("random_schemas.py", 7, kRandomSchemas);
  if (schemas.is_null()) GTEST_SKIP() << "Python is not installed";
  json work = json::array();
  std::mt19937 random(4);
  for (const json& schema : schemas) {
    try {
      const auto grammar = testing::compile(parse_json_schema(schema.dump()));
      work.push_back({{"schema", schema},
                      {"texts", draw_some(grammar, random, kRandomDraws)},
                      {"names_repeat", true}});
    } catch (const Error& error) {
      EXPECT_NE(error.code(), Code::internal) << schema << error.what();
    }
  }
  EXPECT_GE(work.size(), size_t{kRandomSchemas} / 2);
  judge(work);
}

}  // namespace
}  // namespace rbee::grammar
