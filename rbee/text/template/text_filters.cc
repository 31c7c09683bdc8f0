// Filters on texts. Other values are turned into text first, as Jinja2 does.

#include <algorithm>
#include <array>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

// The method `name` of str(self), without arguments of its own.
Value by_method(Runtime& runtime, const Value& self, const Args& args, std::string_view name) {
  const Value text = self.is(Kind::text) ? self : runtime.text(to_text(runtime, self));
  return find_method(text, name)(runtime, text, args);
}

Value upper(Runtime& runtime, const Value& self, const Args& args) {
  return by_method(runtime, self, args, "upper");
}

Value lower(Runtime& runtime, const Value& self, const Args& args) {
  return by_method(runtime, self, args, "lower");
}

Value capitalize(Runtime& runtime, const Value& self, const Args& args) {
  return by_method(runtime, self, args, "capitalize");
}

Value trim(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("trim", args, {"chars"});
  return by_method(runtime, self, Args{{given.value_or(0, Value())}, {}}, "strip");
}

Value center(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("center", args, {"width"});
  return by_method(runtime, self, Args{{given.value_or(0, Value(int64_t{80}))}, {}}, "center");
}

// Words begin after white space and - ( { [ <, unlike for str.title.
Value title(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("title", args, {});
  const std::string text = to_text(runtime, self);
  const auto begins_word = [](char32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    size_t end = i;
    size_t next = i;
    while (next < text.size() && !begins_word(next_code_point(text, next))) end = next;
    size_t first = i;
    if (end > i) {
      next_code_point(text, first);
      out += to_upper(std::string_view(text).substr(i, first - i));
      out += to_lower(std::string_view(text).substr(first, end - first));
    } else {
      end = next;
      out += std::string_view(text).substr(i, end - i);
    }
    i = end;
  }
  return runtime.text(std::move(out));
}

Value replace(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("replace", args, {"old", "new", "count"}, 2);
  std::string text;
  std::string old;
  std::string with;
  const int64_t count = given.is_none(2) ? -1 : given.integer(2, -1);
  return runtime.text(replace_text(runtime, text_of(runtime, self, text),
                                   text_of(runtime, *given[0], old),
                                   text_of(runtime, *given[1], with), count));
}

Value string(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("string", args, {});
  return self.is(Kind::text) ? self : runtime.text(to_text(runtime, self));
}

Value escape(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("escape", args, {});
  return runtime.text(escape_markup(runtime, self), true);
}

Value forceescape(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("forceescape", args, {});
  return runtime.text(escape_markup(runtime, runtime.text(to_text(runtime, self))), true);
}

Value safe(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("safe", args, {});
  return runtime.text(to_text(runtime, self), true);
}

Value format(Runtime& runtime, const Value& self, const Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    raise("format takes positional or keyword arguments, not both");
  }
  const Value text = self.is(Kind::text) ? self : runtime.text(to_text(runtime, self));
  if (args.named.empty()) return percent_format(runtime, text, runtime.tuple(args.positional));
  Dict* named = runtime.dict();
  for (const auto& [name, value] : args.named) runtime.set(*named, runtime.text(name), value);
  return percent_format(runtime, text, Value(static_cast<const Dict*>(named)));
}

// `width` spaces, or the text itself.
std::string indention(Runtime& runtime, const Value& width) {
  if (width.is(Kind::text)) return width.text().bytes;
  if (!width.is_integral()) raise("indent needs a width or a string, got ", type_name(width));
  const int64_t count = std::max<int64_t>(0, width.integer());
  runtime.heap().require(count);
  return std::string(static_cast<size_t>(count), ' ');
}

Value indent(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("indent", args, {"width", "first", "blank"});
  if (self.is(Kind::undefined)) raise_undefined(self);
  if (!self.is(Kind::text)) raise("indent needs a string, got ", type_name(self));
  const std::string space = indention(runtime, given.value_or(0, Value(int64_t{4})));
  const bool blank = given.flag(2, false);
  const std::string text = self.text().bytes + "\n";
  std::string out = given.flag(1, false) ? space : "";
  bool is_first = true;
  for (const std::string_view line : split_lines(text)) {
    runtime.step_bytes(64 + space.size());
    if (!is_first) {
      out += '\n';
      if (blank || !line.empty()) out += space;
    }
    is_first = false;
    out += line;
    runtime.heap().require(static_cast<int64_t>(out.size()));
  }
  return runtime.text(std::move(out), self.text().safe);
}

Value truncate(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("truncate", args, {"length", "killwords", "end", "leeway"});
  const int64_t length = given.integer(0, 255);
  const std::string_view end = given.text(2, "...");
  const int64_t leeway = given.is_none(3) ? 5 : given.integer(3, 5);
  const int64_t end_length = count_code_points(end);
  if (length < end_length) raise("truncate needs a length of at least that of its end");
  if (leeway < 0) raise("truncate needs a leeway of at least 0");
  if (size_of(self) - length <= leeway) return self;
  if (!self.is(Kind::text)) raise("truncate needs a string, got ", type_name(self));
  std::string_view text = self.text().bytes;
  text = text.substr(0, byte_offset(text, length - end_length));
  if (!given.flag(1, false)) text = text.substr(0, text.rfind(' '));
  return runtime.text(cat(text, end), self.text().safe);
}

void append_percent_encoded(std::string& out, std::string_view text, bool in_query) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "_.-~";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool alnum = byte < 0x80 && is_alnum(byte);
    if (alnum || kPlain.find(c) != kPlain.npos || (c == '/' && !in_query)) {
      out += c;
    } else if (c == ' ' && in_query) {
      out += '+';
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
}

Value urlencode(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("urlencode", args, {});
  std::string out;
  std::string storage;
  if (self.is(Kind::text) || !is_iterable(self)) {
    append_percent_encoded(out, text_of(runtime, self, storage), false);
    return runtime.text(std::move(out));
  }
  std::vector<std::pair<Value, Value>> pairs;
  if (self.is(Kind::dict)) {
    pairs = self.dict().entries;
  } else {
    for (const Value& item : items_of(runtime, self)) {
      const std::vector<Value> pair = items_of(runtime, item);
      if (pair.size() != 2) raise("urlencode needs pairs");
      pairs.emplace_back(pair[0], pair[1]);
    }
  }
  for (const auto& [key, value] : pairs) {
    if (!out.empty()) out += '&';
    append_percent_encoded(out, text_of(runtime, key, storage), true);
    out += '=';
    append_percent_encoded(out, text_of(runtime, value, storage), true);
    runtime.heap().require(static_cast<int64_t>(out.size()));
    runtime.step();
  }
  return runtime.text(std::move(out));
}

Value wordcount(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("wordcount", args, {});
  const std::string text = to_text(runtime, self);
  int64_t count = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const bool word = is_word(next_code_point(text, i));
    count += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value(count);
}

Value xmlattr(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("xmlattr", args, {"autospace"});
  if (self.is(Kind::undefined)) raise_undefined(self);
  if (!self.is(Kind::dict)) raise("xmlattr needs a mapping, got ", type_name(self));
  std::string out;
  for (const auto& [key, value] : self.dict().entries) {
    if (value.is(Kind::none) || value.is(Kind::undefined)) continue;
    if (!key.is(Kind::text)) raise("an attribute's name must be a string");
    if (key.text().bytes.find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      raise("invalid character in attribute name '", key.text().bytes, "'");
    }
    if (!out.empty()) out += ' ';
    out += cat(escape_markup(runtime, key), "=\"", escape_markup(runtime, value), '"');
    runtime.heap().require(static_cast<int64_t>(out.size()));
  }
  const bool spaced = given.flag(0, true) && !out.empty();
  return runtime.text(cat(spaced ? " " : "", out));
}

constexpr std::array<NamedNative, 19> kFilters = {{
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title},
    {"trim", trim},
    {"center", center},
    {"replace", replace},
    {"string", string},
    {"escape", escape},
    {"e", escape},
    {"forceescape", forceescape},
    {"safe", safe},
    {"format", format},
    {"indent", indent},
    {"truncate", truncate},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
    {"xmlattr", xmlattr},
    {"wordwrap", filter_wordwrap},
}};

}  // namespace

std::span<const NamedNative> text_filters() {
  return kFilters;
}

}  // namespace rbee::text::jinja
