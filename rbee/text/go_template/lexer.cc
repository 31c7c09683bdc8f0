#include "rbee/text/go_template/lexer.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/text/utf8.h"

namespace rbee::text::go {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kOpen = "{{", kClose = "}}", kBegin = "/*", kEnd = "*/";

bool is_blank(char c) {
  return kBlanks.find(c) != std::string_view::npos;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_name(char c) {
  return is_letter(c) || is_digit(c);
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const size_t open = std::min(source_.find(kOpen, at_), source_.size());
      add_text(open);
      if (at_ < source_.size()) action();
    }
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_at(std::string_view why) const {
    fail(Code::invalid_argument, "template", "line ", line_, ": ", why);
  }

  std::string_view rest() const { return source_.substr(at_); }

  void skip(size_t count) {
    line_ += static_cast<int>(std::ranges::count(source_.substr(at_, count), '\n'));
    at_ += count;
  }

  void add(TokenType type, size_t size, Value literal = {}) {
    tokens_.push_back({type, line_, std::string(source_.substr(at_, size)), std::move(literal)});
    skip(size);
  }

  // Up to an action, which may take the blanks before it.
  void add_text(size_t end) {
    std::string_view text = source_.substr(at_, end - at_);
    const std::string_view after = source_.substr(end);
    const bool trims = after.size() > 3 && after.starts_with("{{-") && is_blank(after[3]);
    if (trims) text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
    const int line = line_;
    skip(end - at_);
    if (!text.empty()) tokens_.push_back({TokenType::text, line, std::string(text)});
  }

  void action() {
    skip(kOpen.size());
    if (rest().size() > 1 && rest()[0] == '-' && is_blank(rest()[1])) skip(1);
    const std::string_view body = rest();
    const size_t first = std::min(body.find_first_not_of(kBlanks), body.size());
    const bool trimmed = source_[at_ - 1] == '-';
    const bool comment = body.substr(trimmed ? first : 0).starts_with(kBegin);
    if (comment) return skip_comment();
    tokens_.push_back({TokenType::open, line_, {}});
    while (!close()) token();
  }

  void skip_comment() {
    const size_t end = rest().find(kEnd);
    if (end == std::string_view::npos) fail_at("a comment has no end");
    skip(end + kEnd.size());
    if (!end_of_action()) fail_at("a comment is alone in its action");
  }

  // Skips "}}", or " -}}" and the blanks after it.
  bool end_of_action() {
    if (rest().starts_with(kClose)) {
      skip(kClose.size());
      return true;
    }
    const size_t blanks = std::min(rest().find_first_not_of(kBlanks), rest().size());
    if (blanks == 0 || !rest().substr(blanks).starts_with("-}}")) return false;
    skip(blanks + 3);
    skip(std::min(rest().find_first_not_of(kBlanks), rest().size()));
    return true;
  }

  bool close() {
    const int line = line_;
    if (!end_of_action()) return false;
    tokens_.push_back({TokenType::close, line, {}});
    return true;
  }

  void token() {
    if (rest().empty()) fail_at("an action has no end");
    const char c = rest()[0];
    if (is_blank(c)) return add(TokenType::space, blanks());
    if (rest().starts_with(":=")) return add(TokenType::mark, 2);
    if (std::string_view("=|(),").find(c) != std::string_view::npos) {
      return add(TokenType::mark, 1);
    }
    if (c == '"') return quoted();
    if (c == '`') return raw();
    if (c == '\'') return letter();
    if (c == '.' && (rest().size() < 2 || !is_name(rest()[1]))) return add(TokenType::dot, 1);
    if (c == '.' && !is_digit(rest()[1])) return add(TokenType::field, 1 + name(1));
    if (c == '$') return add(TokenType::variable, 1 + name(1));
    if (is_digit(c) || c == '+' || c == '-' || c == '.') return number();
    if (is_letter(c)) return add(TokenType::word, name(0));
    fail_at(cat("unexpected '", std::string_view(&c, 1), "' in an action"));
  }

  size_t blanks() const { return std::min(rest().find_first_not_of(kBlanks), rest().size()); }

  // Letters of a name from here on.
  size_t name(size_t from) const {
    const std::string_view text = rest().substr(from);
    return static_cast<size_t>(std::ranges::find_if_not(text, is_name) - text.begin());
  }

  void raw() {
    const size_t end = rest().find('`', 1);
    if (end == std::string_view::npos) fail_at("a raw text has no end");
    std::string text(rest().substr(1, end - 1));
    std::erase(text, '\r');
    add(TokenType::literal, end + 1, of_text(std::move(text)));
  }

  void quoted() {
    std::string out;
    size_t at = 1;
    while (true) {
      if (at >= rest().size() || rest()[at] == '\n') fail_at("a text has no end");
      if (rest()[at] == '"') break;
      if (rest()[at] == '\\') {
        escape(at, out, '"');
      } else {
        out += rest()[at++];
      }
    }
    add(TokenType::literal, at + 1, of_text(std::move(out)));
  }

  // A letter is a number.
  void letter() {
    std::string out;
    size_t at = 1;
    if (rest().size() > 1 && rest()[1] == '\\') {
      escape(at, out, '\'');
    } else if (rest().size() > 1) {
      const size_t length = std::min(utf8_length(rest()[1]), rest().size() - 1);
      out = rest().substr(1, length);
      at += length;
    }
    const bool one = utf8_valid(out) && !out.empty() && utf8_length(out[0]) == out.size();
    if (!one || at >= rest().size() || rest()[at] != '\'') fail_at("a letter is malformed");
    add(TokenType::literal, at + 1, of_integer(static_cast<int64_t>(utf8_at(out, 0))));
  }

  // Go's escapes; `at` is that of the backslash, and then what follows.
  void escape(size_t& at, std::string& out, char quote) {
    constexpr std::string_view kNames = "abfnrtv\\", kMeant = "\a\b\f\n\r\t\v\\";
    const char c = at + 1 < rest().size() ? rest()[at + 1] : '\0';
    const size_t known = c == '\0' ? std::string_view::npos : kNames.find(c);
    at += 2;
    if (c == quote) {
      out += c;
    } else if (known != std::string_view::npos) {
      out += kMeant[known];
    } else if (c == 'x') {
      out += static_cast<char>(digits(at, 2, 16));
    } else if (c == 'u' || c == 'U') {
      const uint32_t code = digits(at, c == 'u' ? 4 : 8, 16);
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail_at("no such character");
      append_utf8(out, code);
    } else if (c >= '0' && c <= '7') {
      --at;
      const uint32_t code = digits(at, 3, 8);
      if (code > 255) fail_at("an escape is above 255");
      out += static_cast<char>(code);
    } else {
      fail_at("an unknown escape");
    }
  }

  uint32_t digits(size_t& at, size_t count, int base) const {
    uint32_t out = 0;
    const std::string_view text = rest().substr(std::min(at, rest().size()), count);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    if (text.size() < count || error != std::errc() || end != text.data() + count) {
      fail_at("an escape lacks digits");
    }
    at += count;
    return out;
  }

  void number() {
    size_t size = 1;
    while (size < rest().size()) {
      const char c = rest()[size], before = rest()[size - 1];
      const bool sign = (c == '+' || c == '-') && (before == 'e' || before == 'E');
      if (!is_name(c) && c != '.' && !sign) break;
      ++size;
    }
    std::string text(rest().substr(0, size));
    std::erase(text, '_');
    std::string_view digits = text;
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    add(TokenType::literal, size, number_of(digits, negative));
  }

  Value number_of(std::string_view digits, bool negative) const {
    const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
    if (hex) digits.remove_prefix(2);
    const bool octal = !hex && digits.size() > 1 && digits[0] == '0' && is_digit(digits[1]) &&
                       std::ranges::all_of(digits, is_digit);
    const char* const end = digits.data() + digits.size();
    uint64_t whole = 0;
    const auto read = std::from_chars(digits.data(), end, whole, hex ? 16 : octal ? 8 : 10);
    if (!digits.empty() && read.ptr == end) {
      constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
      const bool fits = read.ec == std::errc() && whole <= kMost + (negative ? 1 : 0);
      if (!fits) fail_at("a number has more than 64 bits");
      return of_integer(static_cast<int64_t>(negative ? 0 - whole : whole));
    }
    double real = 0;
    const auto [stop, error] = std::from_chars(digits.data(), end, real);
    if (hex || octal || digits.empty() || error != std::errc() || stop != end) {
      fail_at("a number is malformed");
    }
    return of_number(negative ? -real : real);
  }

  const std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace rbee::text::go
