// "{}".format(arguments), as Python's str does it.

#include <charconv>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/format_field.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

constexpr int kMaxNesting = 3;  // a format, its specifications, and those of fields in them

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// [[fill]align][sign][#][0][width][grouping][.precision][type]
Field parse_specification(std::string_view text) {
  Field field;
  size_t i = 0;
  const auto at = [&](size_t index) { return index < text.size() ? text[index] : '\0'; };
  size_t second = 0;
  if (!text.empty()) next_code_point(text, second);
  if (is_align(at(second)) && second > 0) {
    field.fill = text.substr(0, second);
    field.align = at(second);
    i = second + 1;
  } else if (is_align(at(0))) {
    field.align = at(i++);
  }
  if (at(i) == '+' || at(i) == '-' || at(i) == ' ') field.sign = at(i++);
  if (at(i) == '#') {
    field.alternate = true;
    ++i;
  }
  if (at(i) == '0') {
    ++i;
    if (field.align == '\0') {
      field.fill = "0";
      field.align = '=';
    }
  }
  field.width = parse_count(text, i);
  if (at(i) == ',' || at(i) == '_') field.grouping = at(i++);
  if (at(i) == '.') {
    const size_t digits = ++i;
    field.precision = static_cast<int>(parse_count(text, i));
    if (i == digits) raise("format specifier missing precision");
  }
  if (i < text.size()) field.type = at(i++);
  if (i != text.size()) raise("invalid format specifier '", text, "'");
  return field;
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Args& arguments)
      : runtime_(runtime), arguments_(arguments) {}

  std::string run(std::string_view format, int nesting = 0) {
    if (nesting >= kMaxNesting) raise("format specifiers are nested too deeply");
    runtime_.step_bytes(format.size());
    std::string out;
    for (size_t i = 0; i < format.size();) {
      const char c = format[i];
      const bool doubled = i + 1 < format.size() && format[i + 1] == c;
      if (c != '{' && c != '}') {
        out += c;
        ++i;
      } else if (doubled) {
        out += c;
        i += 2;
      } else if (c == '}') {
        raise("single '}' in a format string");
      } else {
        const size_t end = field_end(format, i + 1);
        field(out, format.substr(i + 1, end - i - 1), nesting);
        i = end + 1;
      }
    }
    return out;
  }

 private:
  static size_t field_end(std::string_view format, size_t begin) {
    int depth = 1;
    for (size_t i = begin; i < format.size(); ++i) {
      depth += format[i] == '{' ? 1 : format[i] == '}' ? -1 : 0;
      if (depth == 0) return i;
    }
    raise("expected '}' before the end of a format string");
  }

  // name!conversion:specification
  void field(std::string& out, std::string_view text, int nesting) {
    runtime_.step();
    const size_t name_end = std::min(text.find_first_of("!:"), text.size());
    Value value = lookup(text.substr(0, name_end));
    size_t i = name_end;
    if (i < text.size() && text[i] == '!') {
      const char conversion = i + 1 < text.size() ? text[i + 1] : '\0';
      value = convert(value, conversion);
      i += 2;
      if (i < text.size() && text[i] != ':') raise("expected ':' after a conversion specifier");
    }
    const std::string_view specification = i < text.size() ? text.substr(i + 1) : "";
    append(out, value, run(specification, nesting + 1));
  }

  Value convert(const Value& value, char conversion) {
    std::string text;
    if (conversion == 's') {
      append_text(runtime_, text, value);
    } else if (conversion == 'r' || conversion == 'a') {
      append_repr(runtime_, text, value);
    } else {
      raise("unknown conversion specifier '", conversion, "'");
    }
    return runtime_.text(std::move(text));
  }

  void append(std::string& out, const Value& value, const std::string& specification) {
    if (specification.empty()) return append_text(runtime_, out, value);
    const Field field = parse_specification(specification);
    constexpr std::string_view kFloats = "eEfFgG%";
    const bool float_type = field.type != '\0' && kFloats.find(field.type) != kFloats.npos;
    if (value.is(Kind::text)) {
      const bool numeric = field.align == '=' && field.fill != "0";
      if ((field.type != '\0' && field.type != 's') || numeric) {
        raise("the format code '", field.type, "' does not fit a string");
      }
      Field left = field;
      if (left.align == '=') left.align = '<';
      return append_string(runtime_, out, value.text().bytes, left);
    }
    if (value.is(Kind::floating) || (value.is_int() && float_type)) {
      constexpr std::string_view kWhole = "bdoxXcs";
      const bool bad = field.type != '\0' && kWhole.find(field.type) != kWhole.npos;
      if (bad) raise("the format code '", field.type, "' does not fit a float");
      return append_float(runtime_, out, value.number(), field);
    }
    constexpr std::string_view kIntegers = "bdoxX";
    const bool integer_type = field.type == '\0' || kIntegers.find(field.type) != kIntegers.npos;
    if (!value.is_int() || !integer_type) {
      raise("unsupported format '", specification, "' for ", type_name(value));
    }
    if (field.precision >= 0) raise("precision not allowed in integer format specifier");
    append_integer(runtime_, out, value, field);
  }

  // first.attribute[item]...
  Value lookup(std::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, first_end));
    size_t i = first_end;
    while (i < name.size()) {
      const bool item = name[i] == '[';
      const size_t end = item ? name.find(']', i) : name.find_first_of(".[", i + 1);
      if (item && end == std::string_view::npos) raise("missing ']' in a format string");
      const std::string_view part = name.substr(i + 1, end == name.npos ? end : end - i - 1);
      if (part.empty()) raise("empty attribute in a format string");
      if (!item) {
        value = attribute(runtime_, value, part);
      } else if (is_number(part)) {
        value = subscript(runtime_, value, Value(number(part)));
      } else {
        value = subscript(runtime_, value, runtime_.text(part));
      }
      i = end == name.npos ? name.size() : end + (item ? 1 : 0);
    }
    return value;
  }

  static int64_t number(std::string_view text) {
    size_t i = 0;
    return parse_count(text, i);
  }

  Value argument(std::string_view name) {
    if (name.empty() || is_number(name)) {
      const int64_t index = name.empty() ? automatic_++ : number(name);
      if (static_cast<size_t>(index) >= arguments_.positional.size()) {
        raise("a format string wants more arguments than the ", arguments_.positional.size(),
              " given");
      }
      return arguments_.positional[static_cast<size_t>(index)];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    raise("a format string wants the argument '", name, "'");
  }

  Runtime& runtime_;
  const Args& arguments_;
  int64_t automatic_ = 0;
};

}  // namespace

Value brace_format(Runtime& runtime, std::string_view format, const Args& arguments) {
  return runtime.text(BraceFormatter(runtime, arguments).run(format));
}

}  // namespace rbee::text::jinja
