#include "rbee/grammar/pattern_reader.h"

#include <algorithm>

namespace rbee::grammar {
namespace {

// Length of the valid sequence of UTF-8 at the start of `text`, and its code point; 0 for none.
size_t decode(std::string_view text, char32_t& out) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length == 0 || lead > 0xF4 || text.size() < length) return 0;
  out = length == 1 ? lead : lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    out = (out << 6) | (byte(i) & 0x3F);
  }
  const bool shortest = length < 3 || out >= (length == 3 ? 0x800u : 0x10000u);
  const bool scalar = out <= 0x10FFFF && (out < 0xD800 || out > 0xDFFF);
  return shortest && scalar ? length : 0;
}

}  // namespace

PatternReader::PatternReader(std::string_view where, std::string_view text)
    : where_(where), text_(text) {
  for (char32_t c = 0; at_ < text_.size();) {
    const size_t length = decode(text_.substr(at_), c);
    if (length == 0) refuse("not valid UTF-8");
    at_ += length;
  }
  at_ = 0;
}

char32_t PatternReader::next_char() {
  if (done()) refuse("the text ends too early");
  char32_t out = 0;
  at_ += decode(text_.substr(at_), out);
  return out;
}

char32_t PatternReader::hex_number(int digits) {
  char32_t out = 0;
  for (int i = 0; i < digits; ++i) {
    const char c = look();
    const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!letter && (c < '0' || c > '9')) refuse("expected ", digits, " hexadecimal digits");
    out = out * 16 + static_cast<char32_t>(letter ? (c | 0x20) - 'a' + 10 : c - '0');
    advance();
  }
  return out;
}

char32_t PatternReader::hex(int digits) {
  const char32_t out = hex_number(digits);
  if (out > 0x10FFFF || (out >= 0xD800 && out <= 0xDFFF)) refuse("this is no character");
  return out;
}

std::optional<int64_t> PatternReader::number() {
  if (look() < '0' || look() > '9') return std::nullopt;
  int64_t out = 0;
  for (; look() >= '0' && look() <= '9'; advance()) {
    out = out * 10 + (look() - '0');
    if (out > kMaxRepeat) refuse("more than ", kMaxRepeat, " repetitions");
  }
  return out;
}

void PatternReader::skip_space() {
  for (;; advance()) {
    if (look() == '#') {
      while (!done() && look() != '\n' && look() != '\r') advance();
    }
    if (done() || std::string_view(" \t\r\n").find(look()) == std::string_view::npos) return;
  }
}

PatternReader::Bounds PatternReader::bounds(Space space) {
  const auto next_number = [&] {
    if (space == Space::skipped) skip_space();
    const std::optional<int64_t> out = number();
    if (space == Space::skipped) skip_space();
    return out;
  };
  const std::optional<int64_t> min = next_number();
  Bounds out{min.value_or(0), min.value_or(0)};
  if (skip(",")) {
    const std::optional<int64_t> max = next_number();
    if (!min && !max) refuse("expected a number of repetitions");
    out.max = max.value_or(kUnlimited);
    if (max && *max < out.min) refuse("at most ", *max, " is less than at least ", out.min);
  } else if (!min) {
    refuse("expected a number of repetitions");
  }
  if (!skip("}")) refuse("expected }");
  return out;
}

int64_t PatternReader::count() {
  const std::optional<int64_t> out = number();
  if (!out) refuse("expected a number of repetitions");
  return *out;
}

std::string PatternReader::place() const {
  const std::string_view before = text_.substr(0, at_);
  const auto line = std::ranges::count(before, '\n');
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? at_ : at_ - start - 1;
  if (std::ranges::count(text_, '\n') == 0) return cat("at byte ", at_);
  return cat("line ", line + 1, ", column ", column + 1);
}

}  // namespace rbee::grammar
