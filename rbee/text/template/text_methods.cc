// Methods of str that return a changed text.

#include <algorithm>
#include <array>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

// A text like `self`: safe when it is.
Value like(Runtime& runtime, const Value& self, std::string text) {
  return runtime.text(std::move(text), self.text().safe);
}

Value upper(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("upper", args, {});
  return like(runtime, self, to_upper(self.text().bytes));
}

Value lower(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("lower", args, {});
  return like(runtime, self, to_lower(self.text().bytes));
}

Value capitalize(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("capitalize", args, {});
  return like(runtime, self, to_capitalized(self.text().bytes));
}

Value title(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("title", args, {});
  return like(runtime, self, to_title(self.text().bytes));
}

Value swapcase(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("swapcase", args, {});
  const std::string& text = self.text().bytes;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const bool was_upper = is_upper(next_code_point(text, i));
    const std::string_view one = std::string_view(text).substr(start, i - start);
    out += was_upper ? to_lower(one) : to_upper(one);
  }
  return like(runtime, self, std::move(out));
}

Value stripped(Runtime& runtime, const Value& self, const Args& args, bool left, bool right) {
  const Bound given("strip", args, {"chars"});
  std::optional<std::string_view> chars;
  if (!given.is_none(0)) chars = given.text(0, "");
  runtime.step_bytes(self.text().bytes.size());
  return like(runtime, self, std::string(strip(self.text().bytes, chars, left, right)));
}

Value strip_method(Runtime& runtime, const Value& self, const Args& args) {
  return stripped(runtime, self, args, true, true);
}

Value lstrip(Runtime& runtime, const Value& self, const Args& args) {
  return stripped(runtime, self, args, true, false);
}

Value rstrip(Runtime& runtime, const Value& self, const Args& args) {
  return stripped(runtime, self, args, false, true);
}

Value replace(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("replace", args, {"old", "new", "count"}, 2);
  return like(runtime, self,
              replace_text(runtime, self.text().bytes, given.text(0, ""), given.text(1, ""),
                           given.integer(2, -1)));
}

Value removeprefix(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("removeprefix", args, {"prefix"}, 1);
  std::string_view text = self.text().bytes;
  const std::string_view prefix = given.text(0, "");
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return like(runtime, self, std::string(text));
}

Value removesuffix(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("removesuffix", args, {"suffix"}, 1);
  std::string_view text = self.text().bytes;
  const std::string_view suffix = given.text(0, "");
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return like(runtime, self, std::string(text));
}

Value join(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("join", args, {"iterable"}, 1);
  std::string out;
  bool is_first = true;
  for (const Value& item : items_of(runtime, *given[0])) {
    if (!item.is(Kind::text)) raise("join() needs strings, got ", type_name(item));
    if (!is_first) append_text(runtime, out, self);
    is_first = false;
    append_text(runtime, out, item);
  }
  return like(runtime, self, std::move(out));
}

Value format(Runtime& runtime, const Value& self, const Args& args) {
  return brace_format(runtime, self.text().bytes, args);
}

Value format_map(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("format_map", args, {"mapping"}, 1);
  if (!given[0]->is(Kind::dict)) raise("format_map() needs a mapping");
  Args named;
  for (const auto& [key, value] : given[0]->dict().entries) {
    if (key.is(Kind::text)) named.named.emplace_back(key.text().bytes, value);
  }
  return brace_format(runtime, self.text().bytes, named);
}

// `left` and `right` fill characters around self.
Value padded(Runtime& runtime, const Value& self, int64_t left, int64_t right,
             std::string_view fill) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(left + right, static_cast<int64_t>(fill.size()), &bytes)) {
    raise("the width is too large");
  }
  runtime.heap().require(bytes);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.text().bytes;
  for (int64_t i = 0; i < right; ++i) out += fill;
  return like(runtime, self, std::move(out));
}

struct Padding {
  int64_t missing;
  std::string_view fill;
};

Padding padding(const Value& self, const Args& args) {
  const Bound given("justify", args, {"width", "fillchar"}, 1);
  const std::string_view fill = given.text(1, " ");
  if (count_code_points(fill) != 1) raise("the fill character must be one character");
  const int64_t length = self.text().length;
  const int64_t width = std::max(given.integer(0, 0), length);
  return {width - length, fill};
}

Value center(Runtime& runtime, const Value& self, const Args& args) {
  const Padding pad = padding(self, args);
  // Python puts the odd one left only when the width is odd as well.
  const int64_t width = pad.missing + self.text().length;
  const int64_t left = pad.missing / 2 + (pad.missing & width & 1);
  return padded(runtime, self, left, pad.missing - left, pad.fill);
}

Value ljust(Runtime& runtime, const Value& self, const Args& args) {
  const Padding pad = padding(self, args);
  return padded(runtime, self, 0, pad.missing, pad.fill);
}

Value rjust(Runtime& runtime, const Value& self, const Args& args) {
  const Padding pad = padding(self, args);
  return padded(runtime, self, pad.missing, 0, pad.fill);
}

Value zfill(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("zfill", args, {"width"}, 1);
  const Padding pad = padding(self, Args{{*given[0]}, {}});
  const std::string& text = self.text().bytes;
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  runtime.heap().require(pad.missing);
  const std::string zeros(static_cast<size_t>(pad.missing), '0');
  return like(runtime, self, cat(text.substr(0, sign), zeros, text.substr(sign)));
}

Value expandtabs(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("expandtabs", args, {"tabsize"});
  const int64_t size = given.integer(0, 8);
  std::string out;
  int64_t column = 0;
  const std::string& text = self.text().bytes;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(text, i);
    if (c == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      runtime.heap().require(spaces);
      runtime.heap().require(spaces + static_cast<int64_t>(out.size()));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
    } else {
      out += std::string_view(text).substr(start, i - start);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return like(runtime, self, std::move(out));
}

constexpr std::array<NamedNative, 19> kMethods = {{
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title},
    {"swapcase", swapcase},
    {"strip", strip_method},
    {"lstrip", lstrip},
    {"rstrip", rstrip},
    {"replace", replace},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"join", join},
    {"format", format},
    {"format_map", format_map},
    {"center", center},
    {"ljust", ljust},
    {"rjust", rjust},
    {"zfill", zfill},
    {"expandtabs", expandtabs},
}};

}  // namespace

std::span<const NamedNative> text_methods() {
  return kMethods;
}

std::string replace_text(Runtime& runtime, std::string_view text, std::string_view old,
                         std::string_view with, int64_t count) {
  runtime.step_bytes(text.size());
  std::string out;
  size_t at = 0;
  while (count != 0) {
    // An empty `old` occurs before every character and at the end.
    const size_t found = find_text(text, old, at);
    if (found == std::string_view::npos) break;
    out += text.substr(at, found - at);
    out += with;
    runtime.step_bytes(64 + with.size());
    runtime.heap().require(static_cast<int64_t>(out.size()));
    if (count > 0) --count;
    at = found + old.size();
    if (!old.empty()) continue;
    if (at >= text.size()) return out;
    size_t next = at;
    next_code_point(text, next);
    out += text.substr(at, next - at);
    at = next;
  }
  return out.append(text.substr(at));
}

}  // namespace rbee::text::jinja
