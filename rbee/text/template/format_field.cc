#include "rbee/text/template/format_field.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/integers.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

constexpr int kMaxPrecision = 400;  // digits; a double has no more that matter

std::string group_digits(const std::string& digits, char separator, size_t size) {
  const size_t end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(end);
}

// Sign and base prefix in front of `digits`, padded.
void append_number(Runtime& runtime, std::string& out, bool negative, std::string_view base,
                   const std::string& digits, const Field& field) {
  std::string body;
  if (negative) {
    body = "-";
  } else if (field.sign != '-') {
    body = std::string(1, field.sign);
  }
  body += base;
  const size_t prefix = body.size();
  const bool decimal =
      field.type != 'x' && field.type != 'X' && field.type != 'o' && field.type != 'b';
  body += field.grouping != '\0' ? group_digits(digits, field.grouping, decimal ? 3 : 4) : digits;
  append_padded(runtime, out, body, field, '>', prefix);
}

// Digits of |value| for e, f, g (upper or lower case), % and the type-less form.
std::string float_digits(double value, const Field& field) {
  const double magnitude = std::fabs(value);
  if (field.alternate) raise("the flag # does not work for floats");
  if (field.type == '\0' && field.precision < 0) return float_repr(magnitude);
  const int precision = field.precision < 0 ? 6 : field.precision;
  if (precision > kMaxPrecision) raise("a precision of more than ", kMaxPrecision, " digits");
  const char lower = static_cast<char>(field.type | 0x20);
  const bool percent = field.type == '%';
  const auto style = percent || lower == 'f' ? std::chars_format::fixed
                     : lower == 'e'          ? std::chars_format::scientific
                                             : std::chars_format::general;
  char buffer[800];  // 309 digits, a point and kMaxPrecision more
  const double shown = percent ? magnitude * 100 : magnitude;
  std::string digits(buffer,
                     std::to_chars(buffer, buffer + sizeof buffer, shown, style, precision).ptr);
  if (percent) digits += '%';
  const bool whole = digits.find_first_not_of("0123456789") == std::string::npos;
  if (field.type == '\0' && whole) digits += ".0";
  const bool is_upper = field.type == 'E' || field.type == 'F' || field.type == 'G';
  return is_upper ? to_upper(digits) : digits;
}

}  // namespace

int64_t parse_count(std::string_view text, size_t& i) {
  int64_t value = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    value = value * 10 + (text[i] - '0');
    if (value > INT32_MAX) raise("a width or precision in a format is too large");
  }
  return value;
}

void append_padded(Runtime& runtime, std::string& out, std::string_view body, const Field& field,
                   char default_align, size_t prefix) {
  const int64_t missing = field.width - count_code_points(body);
  if (missing <= 0) {
    out += body;
    return;
  }
  runtime.step_bytes(static_cast<size_t>(missing));
  runtime.heap().require(static_cast<int64_t>(out.size()) + field.width * 4);
  const char align = field.align != '\0' ? field.align : default_align;
  const int64_t before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  const auto pad = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) out += field.fill;
  };
  if (align == '=') {
    out += body.substr(0, prefix);
    pad(missing);
    out += body.substr(prefix);
    return;
  }
  pad(before);
  out += body;
  pad(missing - before);
}

void append_integer(Runtime& runtime, std::string& out, const Value& value, const Field& field) {
  int base = 10;
  if (field.type == 'x' || field.type == 'X') base = 16;
  if (field.type == 'o') base = 8;
  if (field.type == 'b') base = 2;
  const bool negative = value.number() < 0;
  std::string digits;
  if (base == 10) {
    digits = decimal_of(value).substr(negative ? 1 : 0);
  } else {
    if (value.is(Kind::wide)) raise_overflow();
    char buffer[72];
    const auto bits = static_cast<uint64_t>(value.integer());
    const uint64_t magnitude = negative ? 0 - bits : bits;
    digits.assign(buffer, std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr);
  }
  std::string prefix;
  if (field.alternate && base != 10) prefix = cat('0', field.type);
  if (field.type == 'X') digits = to_upper(digits);
  append_number(runtime, out, negative, prefix, digits, field);
}

void append_float(Runtime& runtime, std::string& out, double value, const Field& field) {
  append_number(runtime, out, std::signbit(value), {}, float_digits(value, field), field);
}

// `text` cut to the precision, padded.
void append_string(Runtime& runtime, std::string& out, std::string_view text, const Field& field) {
  if (field.precision >= 0) text = text.substr(0, byte_offset(text, field.precision));
  append_padded(runtime, out, text, field, '<', 0);
}

}  // namespace rbee::text::jinja
