#include "rbee/text/go_template/functions.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <limits>
#include <string>

#include "rbee/core/error.h"

namespace rbee::text::go {
namespace {

using Args = std::span<const Value>;
constexpr size_t kAny = std::numeric_limits<size_t>::max();

template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  fail(Code::invalid_argument, "template", parts...);
}

Value made(std::string text, Meter& meter) {
  meter.take(static_cast<int64_t>(text.size()));
  return of_text(std::move(text));
}

bool is_basic(const Value& value) {
  return value.kind != Kind::list && value.kind != Kind::map && value.kind != Kind::nil;
}

bool equal(const Value& a, const Value& b, Meter& meter) {
  const bool comparable =
      a.kind != Kind::list && a.kind != Kind::map && b.kind != Kind::list && b.kind != Kind::map;
  if (!comparable) refuse("eq: a list or a map cannot be compared");
  if (a.kind == Kind::nil || b.kind == Kind::nil) return a.kind == b.kind;
  if (a.kind != b.kind) refuse("eq: ", type_name(a), " and ", type_name(b), " cannot be compared");
  switch (a.kind) {
    case Kind::boolean:
      return a.boolean == b.boolean;
    case Kind::integer:
      return a.integer == b.integer;
    case Kind::number:
      return a.number == b.number;
    default:
      meter.step(static_cast<int64_t>(a.text->size() / 32));
      return *a.text == *b.text;
  }
}

bool less(const Value& a, const Value& b, Meter& meter) {
  if (a.kind != b.kind || !is_basic(a) || a.kind == Kind::boolean) {
    refuse("lt: ", type_name(a), " and ", type_name(b), " cannot be ordered");
  }
  if (a.kind == Kind::integer) return a.integer < b.integer;
  if (a.kind == Kind::number) return a.number < b.number;
  meter.step(static_cast<int64_t>(a.text->size() / 32));
  return *a.text < *b.text;
}

Value eq(Args args, Meter& meter) {
  for (const Value& one : args.subspan(1)) {
    if (equal(args[0], one, meter)) return of_bool(true);
  }
  return of_bool(false);
}

Value ne(Args args, Meter& meter) {
  return of_bool(!equal(args[0], args[1], meter));
}

Value lt(Args args, Meter& meter) {
  return of_bool(less(args[0], args[1], meter));
}

Value le(Args args, Meter& meter) {
  return of_bool(less(args[0], args[1], meter) || equal(args[0], args[1], meter));
}

Value gt(Args args, Meter& meter) {
  return of_bool(!le(args, meter).boolean);
}

Value ge(Args args, Meter& meter) {
  return of_bool(!less(args[0], args[1], meter));
}

Value logical_not(Args args, Meter&) {
  return of_bool(!is_true(args[0]));
}

Value len(Args args, Meter&) {
  const Value& value = args[0];
  switch (value.kind) {
    case Kind::text:
      return of_integer(static_cast<int64_t>(value.text->size()));
    case Kind::list:
      return of_integer(static_cast<int64_t>(value.items->size()));
    case Kind::map:
      if (!value.is_struct) return of_integer(static_cast<int64_t>(value.fields->size()));
      [[fallthrough]];
    default:
      refuse("len: ", type_name(value), " has no length");
  }
}

// Below `end`, which is itself allowed for a slice.
size_t position(const Value& value, size_t end, std::string_view function) {
  if (value.kind != Kind::integer) refuse(function, ": ", type_name(value), " is no position");
  if (value.integer < 0 || value.integer > static_cast<int64_t>(end)) {
    refuse(function, ": ", value.integer, " is out of range");
  }
  return static_cast<size_t>(value.integer);
}

Value indexed(const Value& value, const Value& key) {
  if (value.kind == Kind::list) {
    const size_t at = position(key, value.items->size(), "index");
    if (at == value.items->size()) refuse("index: ", at, " is out of range");
    return (*value.items)[at];
  }
  if (value.kind == Kind::text) {
    const size_t at = position(key, value.text->size(), "index");
    if (at == value.text->size()) refuse("index: ", at, " is out of range");
    return of_integer(static_cast<unsigned char>((*value.text)[at]));
  }
  if (value.kind == Kind::map && !value.is_struct) {
    if (key.kind != Kind::text) refuse("index: ", type_name(key), " is no name of a map");
    const Value* found = value.find(*key.text);
    return found == nullptr ? Value{} : *found;
  }
  refuse("index: ", type_name(value), " has no items");
}

Value index(Args args, Meter&) {
  Value out = args[0];
  for (const Value& key : args.subspan(1)) out = indexed(out, key);
  return out;
}

Value slice(Args args, Meter& meter) {
  const Value& value = args[0];
  const bool text = value.kind == Kind::text;
  if (!text && value.kind != Kind::list) refuse("slice: ", type_name(value), " has no items");
  const size_t size = text ? value.text->size() : value.items->size();
  const size_t begin = args.size() > 1 ? position(args[1], size, "slice") : 0;
  const size_t end = args.size() > 2 ? position(args[2], size, "slice") : size;
  if (begin > end) refuse("slice: ", begin, " is behind ", end);
  if (text) return made(value.text->substr(begin, end - begin), meter);
  meter.take(static_cast<int64_t>((end - begin) * sizeof(Value)));
  const auto at = value.items->begin();
  return of_items(Items(at + static_cast<ptrdiff_t>(begin), at + static_cast<ptrdiff_t>(end)));
}

// As Go's Sprint: a blank between two of which neither is a text.
Value joined(Args args, Meter& meter) {
  std::string out;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool gap = i > 0 && args[i].kind != Kind::text && args[i - 1].kind != Kind::text;
    out += cat(gap ? " " : "", measured_print(args[i], meter));
  }
  return made(std::move(out), meter);
}

Value joined_line(Args args, Meter& meter) {
  std::string out;
  for (size_t i = 0; i < args.size(); ++i) {
    out += cat(i > 0 ? " " : "", measured_print(args[i], meter));
  }
  return made(out + "\n", meter);
}

// A verb without flags.
std::string formatted(char verb, const Value& value, Meter& meter) {
  const bool fits = verb == 'v' || (verb == 's' && value.kind == Kind::text) ||
                    (verb == 'd' && value.kind == Kind::integer) ||
                    (verb == 't' && value.kind == Kind::boolean);
  if (verb == 's' && value.prints_json) return measured_json(value, meter);
  if (!fits) {
    refuse("printf: %", std::string_view(&verb, 1), " of ", type_name(value), " is not known here");
  }
  return measured_print(value, meter);
}

Value with_format(Args args, Meter& meter) {
  if (args[0].kind != Kind::text) refuse("printf: its first argument must be a text");
  const std::string& format = *args[0].text;
  std::string out;
  size_t used = 1;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
    } else if (++i < format.size() && format[i] == '%') {
      out += '%';
    } else {
      if (i >= format.size() || used >= args.size()) refuse("printf: a value is missing");
      out += formatted(format[i], args[used++], meter);
    }
  }
  if (used != args.size()) refuse("printf: there are more values than places");
  return made(std::move(out), meter);
}

Value json(Args args, Meter& meter) {
  return of_text(measured_json(args[0], meter));
}

Value day(int back, Meter& meter) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  localtime_r(&now, &parts);
  parts.tm_mday -= back;
  parts.tm_isdst = -1;
  (void)std::mktime(&parts);
  std::array<char, 32> text{};
  return made({text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts)}, meter);
}

Value current_date(Args, Meter& meter) {
  return day(0, meter);
}

Value yesterday_date(Args, Meter& meter) {
  return day(1, meter);
}

// A JSON type in TypeScript's words.
std::string typescript_name(std::string_view name) {
  if (name == "integer" || name == "number") return "number";
  if (name == "object") return "Record<string, any>";
  if (name == "string" || name == "boolean" || name == "null") return std::string(name);
  return "any";
}

std::string typescript_of(const Value& property);

std::string typescript_of_type(std::string_view name, const Value& property) {
  if (name != "array") return typescript_name(name);
  const Value* items = property.find("Items");
  const Value* of = items == nullptr ? nullptr : items->find("type");
  const bool known = of != nullptr && of->kind == Kind::text;
  return cat(known ? typescript_name(*of->text) : "any", "[]");
}

// "string | number" of a property of a tool.
std::string typescript_of(const Value& property) {
  const Value* any_of = property.find("AnyOf");
  std::string out;
  const auto add = [&](const std::string& name) { out += cat(out.empty() ? "" : " | ", name); };
  if (any_of != nullptr && any_of->kind == Kind::list) {
    for (const Value& one : *any_of->items) add(typescript_of(one));
  }
  const Value* type = property.find("Type");
  if (!out.empty() || type == nullptr) return out.empty() ? "any" : out;
  if (type->kind == Kind::text) return typescript_of_type(*type->text, property);
  if (type->kind != Kind::list) return "any";
  for (const Value& one : *type->items) {
    if (one.kind == Kind::text) add(typescript_of_type(*one.text, property));
  }
  return out.empty() ? "any" : out;
}

Value to_typescript(Args args, Meter& meter) {
  return made(typescript_of(args[0]), meter);
}

constexpr Function kFunctions[] = {
    {"and", 1, kAny, nullptr},
    {"or", 1, kAny, nullptr},
    {"not", 1, 1, logical_not},
    {"eq", 2, kAny, eq},
    {"ne", 2, 2, ne},
    {"lt", 2, 2, lt},
    {"le", 2, 2, le},
    {"gt", 2, 2, gt},
    {"ge", 2, 2, ge},
    {"len", 1, 1, len},
    {"index", 1, kAny, index},
    {"slice", 1, 3, slice},
    {"print", 0, kAny, joined},
    {"println", 0, kAny, joined_line},
    {"printf", 1, kAny, with_format},
    {"json", 1, 1, json},
    {"currentDate", 0, kAny, current_date},
    {"yesterdayDate", 0, kAny, yesterday_date},
    {"toTypeScriptType", 1, 1, to_typescript},
};

}  // namespace

const Function* find_function(std::string_view name) {
  const auto at = std::ranges::find(kFunctions, name, &Function::name);
  return at == std::end(kFunctions) ? nullptr : at;
}

int64_t size_of(const Value& value, Meter& meter) {
  constexpr int64_t kEach = 8;
  meter.step(1);
  int64_t out = kEach;
  if (value.json) return out + static_cast<int64_t>(value.json->size());
  if (value.kind == Kind::text) out += static_cast<int64_t>(value.text->size());
  if (value.kind == Kind::list) {
    for (const Value& item : *value.items) out += size_of(item, meter);
  }
  if (value.kind == Kind::map) {
    for (const auto& [name, field] : *value.fields) {
      out += static_cast<int64_t>(name.size()) + size_of(field, meter);
    }
  }
  return out;
}

// An escaped letter takes up to six bytes.
std::string measured_json(const Value& value, Meter& meter) {
  meter.take(size_of(value, meter));
  std::string out = json_of(value);
  meter.take(static_cast<int64_t>(out.size()));
  return out;
}

std::string measured_print(const Value& value, Meter& meter) {
  meter.take(size_of(value, meter));
  return printed(value);
}

}  // namespace rbee::text::go
