#pragma once
// Hand-written scanners for the pre-tokenizer patterns of known model families. Each gives exactly
// the matches of a backtracking engine, at some hundred megabytes a second.

#include <string_view>
#include <vector>

#include "rbee/text/char_class.h"

namespace rbee::text {

// The differences between the families' patterns; known_patterns() in scanners.cc has their texts.
struct ScanRules {
  enum class Letters : uint8_t {
    gpt2,    // " ?" before letters, digits and symbols
    plain,   // any one character but a letter, digit or line end before letters
    casing,  // as plain; a word ends where lower case turns upper (o200k, Tekken)
  };
  enum class Contractions : uint8_t { none, exact_case, any_case, suffix };

  Letters letters = Letters::gpt2;
  Contractions contractions = Contractions::exact_case;
  int max_digits = 0;       // digits in one word; 0: no limit
  bool slash_tail = false;  // "/" may end a word of symbols, as line ends may
};

// The rules of a pattern's exact text, or null.
const ScanRules* known_pattern(std::string_view pattern);
const ScanRules& gpt2_rules();

// Appends the words of `text` (valid UTF-8). They cover it without gaps.
void scan(const ScanRules& rules, std::string_view text, std::vector<std::string_view>& words);

}  // namespace rbee::text
