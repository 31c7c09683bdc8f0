#include "rbee/text/go_template/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "rbee/core/cat.h"
#include "rbee/text/utf8.h"

namespace rbee::text::go {
namespace {

// The shortest digits that mean the number, and where its point is: 0.digits times ten to `point`.
struct Digits {
  bool negative = false;
  std::string text;
  int point = 0;
};

Digits digits_of(double value) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value),
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view written(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t mark = written.find('e');
  Digits out{.negative = std::signbit(value), .text = {}, .point = 0};
  for (const char c : written.substr(0, mark)) {
    if (c != '.') out.text += c;
  }
  std::string_view exponent = written.substr(mark + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), out.point);
  ++out.point;
  if (value == 0) out.point = 1;
  return out;
}

std::string plain(const Digits& digits) {
  const int count = static_cast<int>(digits.text.size());
  std::string out = digits.negative ? "-" : "";
  if (digits.point <= 0) {
    return out + "0." + std::string(static_cast<size_t>(-digits.point), '0') + digits.text;
  }
  if (digits.point >= count) {
    return out + digits.text + std::string(static_cast<size_t>(digits.point - count), '0');
  }
  const auto point = static_cast<size_t>(digits.point);
  return out + digits.text.substr(0, point) + "." + digits.text.substr(point);
}

// least: digits of the exponent.
std::string scientific(const Digits& digits, size_t least) {
  const int exponent = digits.point - 1;
  std::string power = std::to_string(std::abs(exponent));
  power.insert(0, power.size() < least ? least - power.size() : 0, '0');
  const std::string rest = digits.text.size() > 1 ? "." + digits.text.substr(1) : "";
  return cat(digits.negative ? "-" : "", digits.text.substr(0, 1), rest, "e",
             exponent < 0 ? "-" : "+", power);
}

std::string printed_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  constexpr int kLeast = -4, kMost = 6;
  const Digits digits = digits_of(value);
  const int exponent = digits.point - 1;
  return exponent < kLeast || exponent >= kMost ? scientific(digits, 2) : plain(digits);
}

void escape(char32_t code, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(code >> shift) & 15];
}

}  // namespace

const Value* Value::find(std::string_view name) const {
  if (!fields) return nullptr;
  const auto at = std::ranges::find(*fields, name, &Fields::value_type::first);
  return at == fields->end() ? nullptr : &at->second;
}

Value of_bool(bool value) {
  return {.kind = Kind::boolean, .boolean = value};
}

Value of_integer(int64_t value) {
  return {.kind = Kind::integer, .integer = value};
}

Value of_number(double value) {
  return {.kind = Kind::number, .number = value};
}

Value of_text(std::string value) {
  return {.kind = Kind::text, .text = std::make_shared<const std::string>(std::move(value))};
}

Value of_items(Items items) {
  return {.kind = Kind::list, .items = std::make_shared<const Items>(std::move(items))};
}

Value of_map(Fields fields) {
  std::ranges::sort(fields, {}, &Fields::value_type::first);
  return {.kind = Kind::map, .fields = std::make_shared<const Fields>(std::move(fields))};
}

Value of_struct(Fields fields) {
  return {.kind = Kind::map,
          .fields = std::make_shared<const Fields>(std::move(fields)),
          .is_struct = true};
}

std::string_view type_name(const Value& value) {
  constexpr std::string_view kNames[] = {"nil", "bool", "int", "float64", "string", "list", "map"};
  return kNames[static_cast<size_t>(value.kind)];
}

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::nil:
      return false;
    case Kind::boolean:
      return value.boolean;
    case Kind::integer:
      return value.integer != 0;
    case Kind::number:
      return value.number != 0;
    case Kind::text:
      return !value.text->empty();
    case Kind::list:
      return !value.items->empty();
    case Kind::map:
      return value.is_struct || !value.fields->empty();
  }
  return false;
}

std::string printed(const Value& value) {
  if (value.prints_json) return json_of(value);
  switch (value.kind) {
    case Kind::nil:
      return "<nil>";
    case Kind::boolean:
      return value.boolean ? "true" : "false";
    case Kind::integer:
      return std::to_string(value.integer);
    case Kind::number:
      return printed_number(value.number);
    case Kind::text:
      return *value.text;
    case Kind::list:
    case Kind::map:
      break;
  }
  std::string out;
  const auto gap = [&] { return out.empty() ? "" : " "; };
  if (value.kind == Kind::list) {
    for (const Value& item : *value.items) out += cat(gap(), printed(item));
    return cat("[", out, "]");
  }
  for (const auto& [name, field] : *value.fields) {
    out += value.is_struct ? cat(gap(), printed(field)) : cat(gap(), name, ":", printed(field));
  }
  return value.is_struct ? cat("{", out, "}") : cat("map[", out, "]");
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    const bool whole = step.part == Utf8Part::character;
    const std::string_view bytes = text.substr(at, whole ? step.length : 1);
    const char32_t code = whole ? utf8_at(text, at) : kReplacement;
    at += bytes.size();
    if (!whole) {
      out += "\\ufffd";
    } else if (code == '"' || code == '\\') {
      out += cat("\\", bytes);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (code < 0x20 || code == '<' || code == '>' || code == '&' || code == 0x2028 ||
               code == 0x2029) {
      escape(code, out);
    } else {
      out += bytes;
    }
  }
  return out + "\"";
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  constexpr double kLeast = 1e-6, kMost = 1e21;
  const double size = std::abs(value);
  const Digits digits = digits_of(value);
  const bool far = size != 0 && (size < kLeast || size >= kMost);
  return far ? scientific(digits, 1) : plain(digits);
}

std::string json_of(const Value& value) {
  if (value.json) return *value.json;
  switch (value.kind) {
    case Kind::nil:
      return "null";
    case Kind::number:
      return json_number(value.number);
    case Kind::text:
      return json_text(*value.text);
    case Kind::boolean:
    case Kind::integer:
      return printed(value);
    case Kind::list:
    case Kind::map:
      break;
  }
  std::string out;
  const auto gap = [&] { return out.empty() ? "" : ","; };
  if (value.kind == Kind::list) {
    for (const Value& item : *value.items) out += cat(gap(), json_of(item));
    return cat("[", out, "]");
  }
  for (const auto& [name, field] : *value.fields) {
    out += cat(gap(), json_text(name), ":", json_of(field));
  }
  return cat("{", out, "}");
}

}  // namespace rbee::text::go
