#pragma once
// Shared by the parsers of GBNF and of regular expressions: reads characters, repetitions and
// numbers; errors say where. Internal to the folder.

#include <optional>
#include <string>
#include <string_view>

#include "rbee/core/error.h"
#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// Deeper groups are refused, so that no text can overflow the stack.
inline constexpr int kMaxNesting = 100;
inline constexpr int64_t kMaxRepeat = 100'000;

class PatternReader {
 public:
  // Messages begin with `where`. Checks that `text` is valid UTF-8.
  PatternReader(std::string_view where, std::string_view text);

  bool done() const { return at_ == text_.size(); }
  size_t at() const { return at_; }
  // The byte `ahead` bytes further; 0 after the end.
  char look(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool starts_with(std::string_view text) const { return text_.substr(at_).starts_with(text); }
  void advance(size_t bytes = 1) { at_ += bytes; }
  bool skip(std::string_view text) {
    if (!starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  std::string_view text() const { return text_; }
  // A whole character. Must not be called at the end.
  char32_t next_char();
  // Reads exactly `digits` hexadecimal digits: a number, or what must be a character.
  char32_t hex_number(int digits);
  char32_t hex(int digits);
  // Blanks, new lines, and comments from # to the end of a line.
  void skip_space();
  // {m}, {m,}, {,n}, {m,n}, read from after the opening brace to after the closing one.
  struct Bounds {
    int64_t min, max;
  };
  // skipped: spaces are allowed between the parts.
  enum class Space : uint8_t { refused, skipped };
  Bounds bounds(Space space = Space::refused);
  // A number of repetitions.
  int64_t count();

  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Code::invalid_argument, where_, place(), ": ", parts...);
  }

 private:
  std::optional<int64_t> number();
  std::string place() const;

  std::string_view where_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace rbee::grammar
