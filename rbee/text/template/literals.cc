// Values of literal tokens.

#include <charconv>
#include <limits>

#include "rbee/text/template/integers.h"
#include "rbee/text/template/lexer.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

std::string without_underscores(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '_') out.push_back(c);
  }
  return out;
}

// The escape letter with `digits` hex digits after it, at byte `i` of the token's text.
char32_t hex_escape(const Token& token, size_t i, size_t digits) {
  uint32_t value = 0;
  const char* begin = token.text.data() + i + 1;
  const bool fits = i + 1 + digits < token.text.size();
  if (!fits || std::from_chars(begin, begin + digits, value, 16).ptr != begin + digits) {
    raise_at(token.position, "a \\", token.text[i], " escape needs ", digits, " hex digits");
  }
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (surrogate || value > 0x10ffff) {
    raise_at(token.position, "a \\", token.text[i], " escape is no character");
  }
  return value;
}

size_t hex_digits(char letter) {
  if (letter == 'x') return 2;
  if (letter == 'u') return 4;
  return letter == 'U' ? 8 : 0;
}

// Up to three octal digits from byte `i`, which moves past them.
char32_t octal_escape(std::string_view text, size_t& i) {
  char32_t value = 0;
  for (int n = 0; n < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++n, ++i) {
    value = value * 8 + static_cast<char32_t>(text[i] - '0');
  }
  return value;
}

// The escape after the backslash before byte `i`; returns the byte after it.
size_t append_escape(std::string& out, const Token& token, size_t i) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  const char c = token.text[i];
  if (c == '\n') return i + 1;
  if (const size_t simple = kLetters.find(c); simple != std::string_view::npos) {
    out.push_back(kMeanings[simple]);
    return i + 1;
  }
  if (const size_t digits = hex_digits(c)) {
    append_utf8(out, hex_escape(token, i, digits));
    return i + 1 + digits;
  }
  if (c == 'N') raise_at(token.position, "\\N escapes are not supported");
  if (c >= '0' && c <= '7') {
    append_utf8(out, octal_escape(token.text, i));
    return i;
  }
  out.push_back('\\');
  return i;
}

}  // namespace

std::string decode_string(const Token& token) {
  std::string out;
  const size_t end = token.text.size() - 1;
  for (size_t i = 1; i < end;) {
    if (token.text[i] == '\\') {
      i = append_escape(out, token, i + 1);
    } else {
      out.push_back(token.text[i++]);
    }
  }
  return out;
}

Value decode_integer(const Token& token, Heap& heap) {
  const std::string text = without_underscores(token.text);
  int base = 10;
  const char radix = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : '\0';
  if (radix == 'x') base = 16;
  if (radix == 'o') base = 8;
  if (radix == 'b') base = 2;
  if (base == 10) return make_integer(heap, text);
  int64_t value = 0;
  const auto result = std::from_chars(text.data() + 2, text.data() + text.size(), value, base);
  if (result.ec != std::errc{}) raise_at(token.position, text, " does not fit into 64 bits");
  return Value(value);
}

double decode_float(const Token& token) {
  const std::string text = without_underscores(token.text);
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{}) {
    return value;
  }
  const bool tiny = text.find('-') != std::string::npos;
  return tiny ? 0.0 : std::numeric_limits<double>::infinity();
}

}  // namespace rbee::text::jinja
