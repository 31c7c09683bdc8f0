#include "rbee/text/template/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr std::array<std::string_view, 26> kSymbols = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) data();
    emit(TokenType::end, 0);
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  char peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  Position position() const { return {line_, column_}; }

  void advance(size_t count) {
    const size_t end = at_ + count;
    for (; at_ < end; ++at_) {
      if (source_[at_] == '\n') {
        ++line_;
        column_ = 1;
      } else if ((source_[at_] & 0xc0) != 0x80) {
        ++column_;  // a code point begins
      }
    }
    if (count > 0) line_starting_ = source_[at_ - 1] == '\n';
  }

  void emit(TokenType type, size_t length) {
    tokens_.push_back({type, position(), source_.substr(at_, length)});
    advance(length);
  }

  size_t spaces_at(size_t from) const {
    size_t i = from;
    while (i < source_.size()) {
      size_t next = i;
      if (!is_space(next_code_point(source_, next))) break;
      i = next;
    }
    return i - from;
  }

  // Text up to the next tag, then that tag.
  void data() {
    const size_t tag = find_tag();
    if (tag == std::string_view::npos) {
      emit(TokenType::data, source_.size() - at_);
      return;
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    emit_data(tag, sign, kind == '{');
    const bool signed_tag = sign == '-' || sign == '+';
    if (kind == '#') return comment(signed_tag ? 3 : 2);
    if (kind == '{') return expression(signed_tag, TokenType::variable_begin);
    if (const size_t length = raw_begin_length()) return raw(length);
    expression(signed_tag, TokenType::block_begin);
  }

  size_t find_tag() const {
    for (size_t i = source_.find('{', at_); i != std::string_view::npos;
         i = source_.find('{', i + 1)) {
      const char next = i + 1 < source_.size() ? source_[i + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return std::string_view::npos;
  }

  // The text before the tag at byte `tag`, shortened as its sign and lstrip_blocks say.
  void emit_data(size_t tag, char sign, bool is_variable) {
    const std::string_view text = source_.substr(at_, tag - at_);
    size_t length = text.size();
    if (sign == '-') {
      length = strip(text, std::nullopt, false, true).size();
    } else if (sign != '+' && !is_variable) {
      const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
      const bool own_line = line > 0 || line_starting_;
      if (own_line && strip(text.substr(line), std::nullopt, true, false).empty()) length = line;
    }
    const size_t rest = text.size() - length;
    if (length > 0) emit(TokenType::data, length);
    advance(rest);
  }

  // Length of "{%- raw %}" here, with the white space that its end swallows; 0 when it is none.
  size_t raw_begin_length() const {
    size_t i = at_ + 2;
    if (i < source_.size() && (source_[i] == '-' || source_[i] == '+')) ++i;
    i += spaces_at(i);
    if (!source_.substr(i).starts_with("raw")) return 0;
    i += 3;
    i += spaces_at(i);
    if (source_.substr(i).starts_with("%}")) return i + 2 - at_;
    if (!source_.substr(i).starts_with("-%}")) return 0;
    i += 3;
    return i + spaces_at(i) - at_;
  }

  // Length of the end tag `close` ("%}" or "#}") at byte `i`, with the text that it swallows.
  size_t close_length(size_t i, std::string_view close) const {
    const std::string_view rest = source_.substr(i);
    if (rest.starts_with(close)) return close.size() + (rest.substr(2).starts_with("\n") ? 1 : 0);
    if (!rest.substr(std::min<size_t>(1, rest.size())).starts_with(close)) return 0;
    if (rest[0] == '+') return 3;
    return rest[0] == '-' ? 3 + spaces_at(i + 3) : 0;
  }

  void comment(size_t begin_length) {
    const Position begin = position();
    // Jinja2 lets a source end right after the sign that opens a comment.
    if (at_ + begin_length == source_.size()) return advance(begin_length);
    for (size_t i = at_ + begin_length; i < source_.size(); ++i) {
      if (const size_t length = close_length(i, "#}")) return advance(i + length - at_);
    }
    raise_at(begin, "the comment has no end");
  }

  void raw(size_t begin_length) {
    const Position begin = position();
    advance(begin_length);
    if (at_ == source_.size()) return;
    for (size_t i = source_.find("{%", at_); i != std::string_view::npos;
         i = source_.find("{%", i + 1)) {
      size_t end = i + 2;
      const char sign = end < source_.size() ? source_[end] : '\0';
      if (sign == '-' || sign == '+') ++end;
      end += spaces_at(end);
      if (!source_.substr(end).starts_with("endraw")) continue;
      end += 6;
      end += spaces_at(end);
      const size_t length = close_length(end, "%}");
      if (length == 0) continue;
      emit_data(i, sign, false);
      return advance(end + length - i);
    }
    raise_at(begin, "the raw block has no end");
  }

  // The tokens of {{ ... }} or {% ... %}.
  void expression(bool has_sign, TokenType begin) {
    const bool is_variable = begin == TokenType::variable_begin;
    emit(begin, has_sign ? 3 : 2);
    std::vector<char> open;
    while (at_ < source_.size()) {
      if (open.empty()) {
        if (const size_t length = is_variable ? variable_end() : close_length(at_, "%}")) {
          return emit(is_variable ? TokenType::variable_end : TokenType::block_end, length);
        }
      }
      token(open);
    }
  }

  size_t variable_end() const {
    if (starts("}}")) return 2;
    return starts("-}}") ? 3 + spaces_at(at_ + 3) : 0;
  }

  void token(std::vector<char>& open) {
    const char c = peek();
    size_t next = at_;
    const char32_t code_point = next_code_point(source_, next);
    if (is_space(code_point)) return advance(spaces_at(at_));
    if (digit(c)) return number();
    if (is_word(code_point)) return word();
    if (c == '\'' || c == '"') return string(c);
    for (const std::string_view symbol : kSymbols) {
      if (!starts(symbol)) continue;
      balance(open, symbol[0]);
      return emit(TokenType::symbol, symbol.size());
    }
    raise_at(position(), "unexpected character '", source_.substr(at_, next - at_), "'");
  }

  void balance(std::vector<char>& open, char c) {
    if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c != ')' && c != ']' && c != '}') return;
    if (open.empty()) raise_at(position(), "unexpected '", c, "'");
    if (open.back() != c) {
      raise_at(position(), "unexpected '", c, "', expected '", open.back(), "'");
    }
    open.pop_back();
  }

  void word() {
    size_t i = at_;
    const char32_t first = next_code_point(source_, i);
    size_t end = i;
    while (i < source_.size() && is_word(next_code_point(source_, i))) end = i;
    if (!is_identifier_start(first)) raise_at(position(), "invalid character in identifier");
    emit(TokenType::name, end - at_);
  }

  // Digits with single underscores between them, from byte i; returns their end.
  size_t digits(size_t i, bool (*accept)(char)) const {
    while (i < source_.size()) {
      const size_t next = source_[i] == '_' ? i + 1 : i;
      if (next >= source_.size() || !accept(source_[next])) break;
      i = next + 1;
    }
    return i;
  }

  void number() {
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    const size_t whole = digits(at_, digit);
    size_t end = whole;
    if (!after_dot) {
      if (at(end) == '.' && digit(at(end + 1))) end = digits(end + 1, digit);
      if (at(end) == 'e' || at(end) == 'E') {
        const size_t sign = at(end + 1) == '+' || at(end + 1) == '-' ? 1 : 0;
        if (digit(at(end + 1 + sign))) end = digits(end + 1 + sign, digit);
      }
    }
    if (end > whole) return emit(TokenType::floating, end - at_);
    emit(TokenType::integer, integer_end() - at_);
  }

  char at(size_t i) const { return i < source_.size() ? source_[i] : '\0'; }

  size_t integer_end() const {
    if (peek() != '0') return digits(at_, digit);
    const auto radix_end = [&](bool (*accept)(char)) {
      const size_t end = digits(at_ + 2, accept);
      return end > at_ + 2 ? end : at_ + 1;
    };
    switch (peek(1) | 0x20) {
      case 'x':
        return radix_end([](char c) { return std::isxdigit(c & 0xff) != 0; });
      case 'o':
        return radix_end([](char c) { return c >= '0' && c <= '7'; });
      case 'b':
        return radix_end([](char c) { return c == '0' || c == '1'; });
      default:
        return digits(at_, [](char c) { return c == '0'; });
    }
  }

  void string(char quote) {
    for (size_t i = at_ + 1; i < source_.size(); ++i) {
      if (source_[i] == '\\') {
        ++i;
      } else if (source_[i] == quote) {
        return emit(TokenType::string, i + 1 - at_);
      }
    }
    raise_at(position(), "the string has no end");
  }

  std::string_view source_;
  size_t at_ = 0;
  int32_t line_ = 1;
  int32_t column_ = 1;
  bool line_starting_ = true;  // nothing but a line end came before
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_source(std::string_view source) {
  const size_t bad = find_invalid_utf8(source);
  if (bad != std::string_view::npos) {
    const auto before = source.substr(0, bad);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto column = bad - (before.rfind('\n') + 1) + 1;
    raise_at({static_cast<int32_t>(line), static_cast<int32_t>(column)}, "invalid UTF-8");
  }
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const bool cr = source[i] == '\r';
    out.push_back(cr ? '\n' : source[i]);
    if (cr && i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace rbee::text::jinja
