// str() and repr() of values, and markup.

#include <charconv>
#include <cmath>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/integers.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

void append_hex(std::string& out, char prefix, char32_t c, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '\\';
  out += prefix;
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) out += kDigits[c >> shift & 0xf];
}

void append_quoted(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(text, i);
    if (c == '\\' || c == static_cast<char32_t>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(start, i - start);
    } else if (c < 0x100) {
      append_hex(out, 'x', c, 2);
    } else if (c < 0x10000) {
      append_hex(out, 'u', c, 4);
    } else {
      append_hex(out, 'U', c, 8);
    }
  }
  out += quote;
}

void append_items(Runtime& runtime, std::string& out, const std::vector<Value>& items) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) out += ", ";
    first = false;
    append_repr(runtime, out, item);
  }
}

void append_dict(Runtime& runtime, std::string& out, const Dict& dict) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!first) out += ", ";
    first = false;
    append_repr(runtime, out, key);
    out += ": ";
    append_repr(runtime, out, value);
  }
  out += '}';
}

void append_sequence(Runtime& runtime, std::string& out, const Sequence& sequence) {
  const auto wrapped = [&](std::string_view open, std::string_view close) {
    out += open;
    append_items(runtime, out, sequence.items);
    out += close;
  };
  switch (sequence.form) {
    case Form::list:
      return wrapped("[", "]");
    case Form::tuple:
      return wrapped("(", sequence.items.size() == 1 ? ",)" : ")");
    case Form::keys:
      return wrapped("dict_keys([", "])");
    case Form::values:
      return wrapped("dict_values([", "])");
    case Form::items:
      return wrapped("dict_items([", "])");
    case Form::generator:
      out += "<generator object>";
      return;
    case Form::range:
      break;
  }
  const auto& range = static_cast<const Range&>(sequence);
  out += cat("range(", range.start, ", ", range.stop);
  if (range.step != 1) out += cat(", ", range.step);
  out += ')';
}

// Shared by str() and repr().
void append_plain(Runtime& runtime, std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::none:
      out += "None";
      return;
    case Kind::boolean:
      out += value.boolean() ? "True" : "False";
      return;
    case Kind::integer:
    case Kind::wide:
      out += decimal_of(value);
      return;
    case Kind::floating:
      out += float_repr(value.floating());
      return;
    case Kind::sequence:
      return append_sequence(runtime, out, value.sequence());
    case Kind::dict:
      return append_dict(runtime, out, value.dict());
    case Kind::space:
      out += "<Namespace ";
      append_dict(runtime, out, value.space().attributes);
      out += '>';
      return;
    case Kind::custom:
      out += value.custom().describe();
      return;
    case Kind::undefined:
    case Kind::text:
      return;
  }
}

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return {};
  }
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string text(buffer, scientific.ptr);
  const size_t e = text.find('e');
  int exponent = 0;
  const char* digits = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits, text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

void append_text(Runtime& runtime, std::string& out, const Value& value) {
  if (value.is(Kind::text)) {
    runtime.heap().require(static_cast<int64_t>(out.size() + value.text().bytes.size()));
    runtime.step_bytes(value.text().bytes.size());
    out += value.text().bytes;
    return;
  }
  if (!value.is(Kind::undefined)) append_repr(runtime, out, value);
}

void append_repr(Runtime& runtime, std::string& out, const Value& value) {
  const Depth depth(runtime);
  runtime.step();
  if (value.is(Kind::undefined)) {
    out += "Undefined";
  } else if (value.is(Kind::text)) {
    runtime.step_bytes(value.text().bytes.size());
    if (value.text().safe) out += "Markup(";
    append_quoted(out, value.text().bytes);
    if (value.text().safe) out += ")";
  } else {
    append_plain(runtime, out, value);
  }
  runtime.heap().require(static_cast<int64_t>(out.size()));
}

std::string to_text(Runtime& runtime, const Value& value) {
  std::string out;
  append_text(runtime, out, value);
  return out;
}

std::string_view text_of(Runtime& runtime, const Value& value, std::string& storage) {
  if (value.is(Kind::text)) return value.text().bytes;
  storage = to_text(runtime, value);
  return storage;
}

std::string escape_markup(Runtime& runtime, const Value& value) {
  std::string storage;
  const std::string_view text = text_of(runtime, value, storage);
  if (value.is(Kind::text) && value.text().safe) return std::string(text);
  runtime.step_bytes(text.size());
  runtime.heap().require(static_cast<int64_t>(text.size() * 5));
  std::string out;
  for (const char c : text) {
    const std::string_view name = entity(c);
    if (name.empty()) {
      out += c;
    } else {
      out += name;
    }
  }
  return out;
}

}  // namespace rbee::text::jinja
