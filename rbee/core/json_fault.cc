#include "rbee/core/json_fault.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "rbee/core/cat.h"
#include "rbee/core/hex.h"
#include "rbee/core/printable.h"

namespace rbee {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(char c) {
  return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

std::string byte_name(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return cat("0x", hex({&value, 1}));
}

// Walks over a text with a list of the open objects and arrays, so depth costs no stack.
class Scan {
 public:
  Scan(std::string_view text, JsonDialect dialect) : text_(text), dialect_(dialect) {}

  std::string fault() {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kMark)) at_ = kMark.size();
    if (!value()) return told();
    while (!open_.empty()) {
      if (!go_on()) return told();
    }
    skip_blanks();
    if (at_ == text_.size()) return "";
    wanted("the end of the text");
    return told();
  }

 private:
  // What follows a value, or the beginning of an object or array, in the innermost one.
  bool go_on() {
    skip_blanks();
    const bool object = open_.back() == '{';
    const char end = object ? '}' : ']';
    if (here() == end && (!after_comma_ || begins_)) {
      open_.pop_back();
      begins_ = after_comma_ = false;
      ++at_;
      return true;
    }
    if (!begins_ && !after_comma_) {
      if (here() != ',') return wanted(object ? "a comma or }" : "a comma or ]");
      ++at_;
      after_comma_ = true;
      return true;
    }
    const bool first = begins_;
    begins_ = after_comma_ = false;
    if (!object) return value(first ? "a value or ]" : "a value");
    if (here() != '"') {
      return wanted(first ? "a name in double quotes or }" : "a name in double quotes");
    }
    if (!string()) return false;
    skip_blanks();
    if (here() != ':') return wanted("a colon behind the name");
    ++at_;
    return value();
  }

  bool value(std::string_view what = "a value") {
    skip_blanks();
    const char c = here();
    if (at_ < text_.size() && (c == '{' || c == '[')) {
      open_ += c;
      begins_ = true;
      after_comma_ = false;
      ++at_;
      return true;
    }
    if (c == '"') return string();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (skip(word)) return true;
    }
    if (dialect_ == JsonDialect::python) {
      for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
        if (skip(word)) return true;
      }
    }
    return c == '-' || is_digit(c) ? number() : wanted(what);
  }

  bool number() {
    const size_t begin = at_;
    skip("-");
    if (!skip("0") && !digits()) return false;
    if (skip(".") && !digits()) return false;
    if ((here() | 0x20) == 'e') {
      ++at_;
      if (here() == '+' || here() == '-') ++at_;
      if (!digits()) return false;
    }
    const std::string written(text_.substr(begin, at_ - begin));
    if (std::isfinite(std::strtod(written.c_str(), nullptr))) return true;
    at_ = begin;
    constexpr size_t kShown = 40;
    return failed(cat("the number ", written.substr(0, kShown),
                      written.size() > kShown ? "..." : "", " is beyond the range of a double"));
  }

  bool digits() {
    if (!is_digit(here())) return wanted("a digit");
    while (is_digit(here())) ++at_;
    return true;
  }

  bool string() {
    const size_t begin = at_++;
    while (here() != '"') {
      if (at_ == text_.size()) {
        at_ = begin;
        return failed("the string that begins here does not end");
      }
      const char byte = here();
      if (static_cast<unsigned char>(byte) < 0x20) {
        return failed(cat("a string holds the control character ", byte_name(byte),
                          ", which must be written as an escape"));
      }
      if (byte == '\\') {
        if (!escape()) return false;
        continue;
      }
      const size_t bytes = first_character_bytes(text_.substr(at_));
      if (bytes == 0) return failed(cat("the byte ", byte_name(byte), " is not UTF-8"));
      at_ += bytes;
    }
    ++at_;
    return true;
  }

  bool escape() {
    const size_t begin = at_++;
    const char c = here();
    if (c == 'u') {
      ++at_;
      const auto unit = four_digits();
      if (!unit) return false;
      const bool high = *unit >= 0xD800 && *unit < 0xDC00;
      if (high && skip("\\u")) {
        const auto low = four_digits();
        if (!low) return false;
        if (*low >= 0xDC00 && *low < 0xE000) return true;
      }
      if (*unit < 0xD800 || *unit >= 0xE000) return true;
      at_ = begin;
      return failed("half of a surrogate pair stands alone");
    }
    if (at_ < text_.size() && std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
      ++at_;
      return true;
    }
    return wanted("one of \" \\ / b f n r t u behind a backslash");
  }

  std::optional<unsigned> four_digits() {
    const std::string digits(text_.substr(at_, 4));
    if (digits.size() < 4 || !std::ranges::all_of(digits, is_hex)) {
      failed("expected four hexadecimal digits behind \\u");
      return std::nullopt;
    }
    at_ += 4;
    return static_cast<unsigned>(std::strtoul(digits.c_str(), nullptr, 16));
  }

  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool skip(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }

  bool wanted(std::string_view what) { return failed(cat("expected ", what, ", found ", found())); }

  bool failed(std::string message) {
    message_ = std::move(message);
    return false;
  }

  // A word or a character.
  std::string found() const {
    if (at_ >= text_.size()) return "the end of the text";
    constexpr size_t kShown = 20;
    const std::string_view rest = text_.substr(at_, kShown);
    const auto end = std::ranges::find_if_not(rest, [](char c) {
      return c == '_' || is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    });
    if (end != rest.begin()) return cat("\"", std::string(rest.begin(), end), "\"");
    const size_t bytes = first_character_bytes(rest);
    if (bytes == 0) return cat("the byte ", byte_name(rest.front()));
    return cat("\"", printable_line(rest.substr(0, bytes)), "\"");
  }

  std::string told() const {
    const std::string_view before = text_.substr(0, at_);
    const auto lines = std::ranges::count(before, '\n');
    const std::string_view line = before.substr(before.rfind('\n') + 1);
    const auto inner = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
    const auto column = std::ssize(line) - std::ranges::count_if(line, inner);
    return cat("line ", lines + 1, ", column ", column + 1, ": ", message_);
  }

  const std::string_view text_;
  const JsonDialect dialect_;
  size_t at_ = 0;
  std::string open_;          // '{' and '['
  bool begins_ = false;       // the innermost one holds nothing yet
  bool after_comma_ = false;  // in the innermost one
  std::string message_;
};

}  // namespace

std::string json_fault(std::string_view text, JsonDialect dialect) {
  return Scan(text, dialect).fault();
}

}  // namespace rbee
