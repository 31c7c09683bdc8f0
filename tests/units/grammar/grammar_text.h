#pragma once
// A vocabulary for tests, and a match of whole texts against grammars.

#include <memory>
#include <string>
#include <vector>

#include "rbee/grammar/matcher.h"

namespace rbee::grammar::testing {

// All bytes, tokens of several characters that occur in JSON, parts of characters, and last the end
// token.
inline std::vector<std::string> some_tokens() {
  std::vector<std::string> out;
  out.reserve(512);
  for (int byte = 0; byte < 256; ++byte) out.emplace_back(1, static_cast<char>(byte));
  for (const char* text : {"{\"",  "\":",  "\": ",     "\",",      "\"}",      "\"]",
                           "},",   "}}",   "]}",       "[[",       "[\"",      "{}",
                           "[]",   "true", "false",    "null",     "rue",      "tr",
                           "12",   "-1",   "0.5",      ".0",       "e1",       "abc",
                           "ab",   "the",  " a",       "name",     "\"name\"", "\\u00",
                           "\\n",  "\\\"", "\xC3\xA9", "\xE2\x82", "\x82\xAC", "\xF0\x9F\x99\x82",
                           "\n  ", "  ",   ", ",       "\": [",    "2024",     "-0",
                           "@a.",  "://"}) {
    out.emplace_back(text);
  }
  out.emplace_back("<end>");
  return out;
}

inline std::shared_ptr<const Vocabulary> some_vocabulary() {
  const std::vector<std::string> tokens = some_tokens();
  const int32_t end = static_cast<int32_t>(tokens.size()) - 1;
  return std::make_shared<const Vocabulary>(tokens, std::span(&end, 1));
}

inline std::shared_ptr<const CompiledGrammar> compile(const Grammar& grammar) {
  return std::make_shared<const CompiledGrammar>(grammar, some_vocabulary());
}

// Whether the grammar accepts the whole text.
inline bool matches(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
  Matcher matcher(grammar);
  return matcher.accept(text) && matcher.complete();
}

}  // namespace rbee::grammar::testing
