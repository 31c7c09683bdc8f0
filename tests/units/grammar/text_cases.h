#pragma once
// Texts that a grammar accepts whole, and texts that it rejects.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rbee/grammar/json_schema.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar::testing {

struct TextCase {
  std::string source;  // a schema, a GBNF grammar or an expression
  std::vector<std::string> accepted;
  std::vector<std::string> rejected;
};

// read: makes a Grammar from a source.
template <typename Read>
void expect_texts(const std::vector<TextCase>& cases, const Read& read) {
  for (const TextCase& c : cases) {
    const auto grammar = compile(read(c.source));
    for (const std::string& text : c.accepted) {
      EXPECT_TRUE(matches(grammar, text)) << c.source << '\n' << text;
    }
    for (const std::string& text : c.rejected) {
      EXPECT_FALSE(matches(grammar, text)) << c.source << '\n' << text;
    }
  }
}

inline void expect_schema_texts(const std::vector<TextCase>& cases) {
  expect_texts(cases, [](const std::string& schema) { return parse_json_schema(schema); });
}

}  // namespace rbee::grammar::testing
