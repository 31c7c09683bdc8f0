#include "rbee/text/scanners.h"

#include <array>
#include <utility>

#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

using Letters = ScanRules::Letters;
using Contractions = ScanRules::Contractions;

constexpr CategoryMask kLower = U_GC_LL_MASK;
// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and [\p{Ll}\p{Lm}\p{Lo}\p{M}] of the casing patterns.
constexpr CategoryMask kHead = (kLetter & ~kLower) | kMark;
constexpr CategoryMask kTail = kLower | U_GC_LM_MASK | U_GC_LO_MASK | kMark;
constexpr CategoryMask kWordOrSpace = kLetter | kNumber | kSpaceBit;
constexpr size_t kFail = 0;  // no match ends where it starts

// clang-format off
const std::array<std::pair<std::string_view, ScanRules>, 7> kPatterns{{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     {Letters::gpt2, Contractions::exact_case, 0, false}},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {Letters::plain, Contractions::any_case, 3, false}},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {Letters::plain, Contractions::any_case, 1, false}},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {Letters::plain, Contractions::any_case, 0, false}},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
     R"(|\s*[\r\n]|\s+(?!\S)|\s+)",
     {Letters::plain, Contractions::any_case, 3, false}},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {Letters::casing, Contractions::suffix, 3, true}},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {Letters::casing, Contractions::none, 1, true}},
}};
// clang-format on

bool is_line_end(char c) {
  return c == '\r' || c == '\n';
}

// text[at], in lower case when `any_case`; NUL past the end.
char letter_of(std::string_view text, size_t at, bool any_case) {
  if (at >= text.size()) return '\0';
  const char c = text[at];
  return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

class Scanner {
 public:
  Scanner(const ScanRules& rules, std::string_view text)
      : rules_(rules), text_(text), classes_(CharClasses::get()) {}

  // End of the match that starts at `at`.
  size_t match(size_t at) const {
    if (const size_t end = contraction_first(at)) return end;
    if (rules_.letters == Letters::gpt2) {
      if (const size_t end = gpt2_word(at)) return end;
    } else {
      if (const size_t end = letters(at)) return end;
      if (const size_t end = digits(at)) return end;
      if (const size_t end = symbols(at)) return end;
    }
    return spaces(at);
  }

 private:
  struct Char {
    CategoryMask mask;
    size_t end;
  };
  Char at(size_t position) const {
    return {classes_[utf8_at(text_, position)], position + utf8_length(text_[position])};
  }
  size_t run(size_t position, CategoryMask mask) const {
    while (position < text_.size()) {
      const Char c = at(position);
      if ((c.mask & mask) == 0) break;
      position = c.end;
    }
    return position;
  }

  size_t run_without(size_t position, CategoryMask mask) const {
    while (position < text_.size()) {
      const Char c = at(position);
      if ((c.mask & mask) != 0) break;
      position = c.end;
    }
    return position;
  }

  size_t contraction_first(size_t position) const {
    if (text_[position] != '\'') return kFail;
    if (rules_.contractions == Contractions::exact_case) return contraction(position, false);
    if (rules_.contractions == Contractions::any_case) return contraction(position, true);
    return kFail;
  }

  // 's 't 're 've 'm 'll 'd, or kFail. In any case U+017F, the long s, is an s.
  size_t contraction(size_t position, bool any_case) const {
    if (position >= text_.size() || text_[position] != '\'') return kFail;
    const std::string_view rest = text_.substr(position + 1, 2);
    switch (letter_of(rest, 0, any_case)) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return position + 2;
      case 'r':
      case 'v':
        return letter_of(rest, 1, any_case) == 'e' ? position + 3 : kFail;
      case 'l':
        return letter_of(rest, 1, any_case) == 'l' ? position + 3 : kFail;
      default:
        return any_case && rest == "\xC5\xBF" ? position + 3 : kFail;
    }
  }

  size_t gpt2_word(size_t position) const {
    const size_t start =
        text_[position] == ' ' && position + 1 < text_.size() ? position + 1 : position;
    const Char c = at(start);
    if (c.mask & kSpaceBit) return kFail;
    if (c.mask & kLetter) return run(c.end, kLetter);
    if (c.mask & kNumber) return run(c.end, kNumber);
    return run_without(c.end, kWordOrSpace);
  }
  size_t letters(size_t position) const {
    const Char c = at(position);
    const bool letter = (c.mask & kLetter) != 0;
    const bool prefix =
        !letter && (c.mask & kNumber) == 0 && !is_line_end(text_[position]) && c.end < text_.size();
    if (rules_.letters == Letters::casing) return casing_word(position, c, prefix);
    if (letter) return run(c.end, kLetter);
    if (!prefix) return kFail;
    const size_t end = run(c.end, kLetter);
    return end > c.end ? end : kFail;
  }

  // Both alternatives with the character before the letters first, then without it.
  size_t casing_word(size_t position, Char first, bool prefix) const {
    size_t end = prefix ? mixed_case(first.end) : kFail;
    if (!end) end = mixed_case(position);
    if (!end && prefix) end = head_case(first.end);
    if (!end) end = head_case(position);
    if (!end || rules_.contractions != Contractions::suffix) return end;
    const size_t longer = contraction(end, true);
    return longer ? longer : end;
  }
  // head* tail+: when no tail follows the heads, the heads are given back to the last that is both.
  size_t mixed_case(size_t position) const {
    size_t last_tail = kFail;
    while (position < text_.size()) {
      const Char c = at(position);
      if ((c.mask & kHead) == 0) break;
      if ((c.mask & kTail) != 0) last_tail = c.end;
      position = c.end;
    }
    const size_t end = run(position, kTail);
    return end > position ? end : last_tail;
  }
  // head+ tail*
  size_t head_case(size_t position) const {
    const size_t end = run(position, kHead);
    return end > position ? run(end, kTail) : kFail;
  }

  size_t digits(size_t position) const {
    if ((at(position).mask & kNumber) == 0) return kFail;
    if (rules_.max_digits == 0) return run(position, kNumber);
    for (int i = 0; i < rules_.max_digits && position < text_.size(); ++i) {
      const Char c = at(position);
      if ((c.mask & kNumber) == 0) break;
      position = c.end;
    }
    return position;
  }

  size_t symbols(size_t position) const {
    const size_t start =
        text_[position] == ' ' && position + 1 < text_.size() ? position + 1 : position;
    size_t end = run_without(start, kWordOrSpace);
    if (end == start) return kFail;
    while (end < text_.size() &&
           (is_line_end(text_[end]) || (rules_.slash_tail && text_[end] == '/'))) {
      ++end;
    }
    return end;
  }

  // \s*[\r\n]+ (not in gpt2), \s+(?!\S), \s+
  size_t spaces(size_t position) const {
    size_t end = position, last = position, line_end = kFail;
    while (end < text_.size()) {
      const Char c = at(end);
      if ((c.mask & kSpaceBit) == 0) break;
      last = end;
      if (is_line_end(text_[end])) line_end = c.end;
      end = c.end;
    }
    if (rules_.letters != Letters::gpt2 && line_end) return line_end;
    return end == text_.size() || last == position ? end : last;
  }

  const ScanRules& rules_;
  std::string_view text_;
  const CharClasses& classes_;
};

}  // namespace

const ScanRules* known_pattern(std::string_view pattern) {
  for (const auto& [text, rules] : kPatterns) {
    if (text == pattern) return &rules;
  }
  return nullptr;
}

const ScanRules& gpt2_rules() {
  return kPatterns[0].second;
}

void scan(const ScanRules& rules, std::string_view text, std::vector<std::string_view>& words) {
  const Scanner scanner(rules, text);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = scanner.match(begin);
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace rbee::text
