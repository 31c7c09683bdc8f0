// Filters on numbers, and the conversions between texts and numbers.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/integers.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

bool is_digit_of(char c, int64_t base) {
  return digit_value(c) < base;
}

// Drops single underscores between digits; nothing if one is elsewhere.
std::optional<std::string> without_underscores(std::string_view text, int64_t base) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() && is_digit_of(text[i - 1], base) &&
                         is_digit_of(text[i + 1], base);
    if (!between) return std::nullopt;
  }
  return out;
}

// The base that a prefix such as 0x names, and the prefix dropped from `text`.
int64_t take_base(std::string_view& text, int64_t base) {
  const char letter = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const int64_t named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (named != 0 && (base == 0 || base == named)) {
    text.remove_prefix(2);
    if (!text.empty() && text[0] == '_') text.remove_prefix(1);
    return named;
  }
  return base == 0 ? 10 : base;
}

Value int_filter(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("int", args, {"default", "base"});
  const Value fallback = given.value_or(0, Value(int64_t{0}));
  if (self.is(Kind::undefined)) raise_undefined(self);
  if (self.is_integral()) return Value(self.integer());
  if (self.is(Kind::wide)) return self;
  if (self.is(Kind::floating)) {
    return std::isnan(self.floating()) ? fallback : make_integer(runtime.heap(), self.floating());
  }
  if (!self.is(Kind::text)) return fallback;
  const int64_t base = given.integer(1, 10);
  if (const auto whole = parse_integer(runtime.heap(), self.text().bytes, base)) return *whole;
  const auto number = parse_float(self.text().bytes);
  const bool finite = number && std::isfinite(*number);
  return finite ? make_integer(runtime.heap(), *number) : fallback;
}

Value float_filter(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const Bound given("float", args, {"default"});
  if (self.is(Kind::undefined)) raise_undefined(self);
  if (self.is_number()) return Value(self.number());
  if (self.is(Kind::text)) {
    if (const auto number = parse_float(self.text().bytes)) return Value(*number);
  }
  return given.value_or(0, Value(0.0));
}

Value abs_filter(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("abs", args, {});
  if (self.is(Kind::floating)) return Value(std::fabs(self.floating()));
  if (self.is(Kind::undefined)) raise_undefined(self);
  if (self.is(Kind::wide)) return self.number() < 0 ? negate(runtime, self) : self;
  if (!self.is_integral()) raise("bad operand type for abs(): '", type_name(self), "'");
  return self.integer() < 0 ? negate(runtime, self) : Value(self.integer());
}

// Correct rounding of the decimal value, ties (which only exist in binary) to even.
double round_float(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 320) return value;
  if (precision < -320) return std::copysign(0.0, value);
  if (precision < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    return std::isinf(unit) ? std::copysign(0.0, value) : std::nearbyint(value / unit) * unit;
  }
  char buffer[800];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed,
                                 static_cast<int>(precision));
  double rounded = 0;
  std::from_chars(buffer, end.ptr, rounded);
  return rounded;
}

int64_t round_integer(int64_t value, int64_t precision) {
  if (precision >= 0) return value;
  if (precision < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i < -precision; ++i) unit *= 10;
  const int64_t rest = value % unit;
  const int64_t down = value - rest;
  const int64_t twice = std::abs(rest) - (unit - std::abs(rest));  // < 0: nearer to `down`
  const bool away = twice > 0 || (twice == 0 && down / unit % 2 != 0);
  int64_t rounded = down;
  if (away && __builtin_add_overflow(down, value < 0 ? -unit : unit, &rounded)) {
    raise_overflow();
  }
  return rounded;
}

Value round_filter(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const Bound given("round", args, {"precision", "method"});
  const int64_t precision = given.integer(0, 0);
  const std::string_view method = given.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") {
    raise("the method of round must be common, ceil or floor");
  }
  if (self.is(Kind::undefined)) raise_undefined(self);
  if (!self.is_number()) raise("round needs a number, got ", type_name(self));
  if (method == "common") {
    if (self.is(Kind::wide) && precision < 0) raise_overflow();
    if (self.is(Kind::wide)) return self;
    if (self.is_integral()) return Value(round_integer(self.integer(), precision));
    return Value(round_float(self.floating(), precision));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (scale == 0) raise("division by zero");
  const double scaled = self.number() * scale;
  if (!std::isfinite(scaled)) raise("cannot convert float infinity to integer");
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value filesizeformat(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("filesizeformat", args, {"binary"});
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  const bool binary_units = given.flag(0, false);
  const double base = binary_units ? 1024 : 1000;
  std::optional<double> bytes;
  if (self.is_number()) bytes = self.number();
  if (self.is(Kind::text)) bytes = parse_float(self.text().bytes);
  if (!bytes || std::isnan(*bytes)) raise("filesizeformat needs a number");
  if (*bytes == 1) return runtime.text("1 Byte");
  if (*bytes < base) return runtime.text(cat(static_cast<int64_t>(*bytes), " Bytes"));
  double unit = base;
  size_t i = 0;
  for (; i + 1 < kPrefixes.size() && *bytes >= unit * base; ++i) unit *= base;
  char buffer[400];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, *bytes / unit, std::chars_format::fixed, 1);
  std::string out(buffer, end.ptr);
  out += ' ';
  out += binary_units && i == 0 ? 'K' : kPrefixes[i];
  return runtime.text(out + (binary_units ? "iB" : "B"));
}

constexpr std::array<NamedNative, 5> kFilters = {{
    {"int", int_filter},
    {"float", float_filter},
    {"abs", abs_filter},
    {"round", round_filter},
    {"filesizeformat", filesizeformat},
}};

}  // namespace

std::span<const NamedNative> number_filters() {
  return kFilters;
}

std::optional<double> parse_float(std::string_view text) {
  const auto clean = without_underscores(strip(text, std::nullopt, true, true), 10);
  if (!clean || clean->empty()) return std::nullopt;
  std::string_view digits = *clean;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.remove_prefix(1);
  if (digits.empty() || digits[0] == '-') return std::nullopt;
  if (to_lower(digits).starts_with("nan(")) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ptr != digits.data() + digits.size() || result.ec == std::errc::invalid_argument) {
    return std::nullopt;
  }
  if (result.ec == std::errc::result_out_of_range) {
    const bool tiny = digits.find('-') != std::string_view::npos;
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return negative ? -value : value;
}

std::optional<Value> parse_integer(Heap& heap, std::string_view text, int64_t base) {
  if (base < 0 || base == 1 || base > 36) return std::nullopt;
  std::string_view digits = strip(text, std::nullopt, true, true);
  const bool negative = !digits.empty() && digits[0] == '-';
  if (negative || (!digits.empty() && digits[0] == '+')) digits.remove_prefix(1);
  const bool zero_led = base == 0 && !digits.empty() && digits[0] == '0';
  base = take_base(digits, base);
  const auto clean = without_underscores(digits, base);
  if (!clean || clean->empty() || !is_digit_of((*clean)[0], base)) return std::nullopt;
  std::string number;
  if (negative) number = "-";
  number += *clean;
  int64_t value = 0;
  const auto result =
      std::from_chars(number.data(), number.data() + number.size(), value, static_cast<int>(base));
  if (result.ptr != number.data() + number.size()) return std::nullopt;
  if (result.ec != std::errc{} && base != 10) raise_overflow();
  if (zero_led && base == 10 && value != 0) return std::nullopt;
  return result.ec == std::errc{} ? Value(value) : make_integer(heap, number);
}

}  // namespace rbee::text::jinja
