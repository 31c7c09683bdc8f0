// Methods of str that search or cut.

#include <algorithm>
#include <array>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

Value pieces(Runtime& runtime, const std::vector<std::string_view>& parts) {
  std::vector<Value> out;
  for (const std::string_view part : parts) out.push_back(runtime.text(part));
  return runtime.list(std::move(out));
}

struct SplitArgs {
  bool by_space;
  std::string_view separator;
  size_t max_parts;  // cuts at most this often
};

SplitArgs split_args(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("split", args, {"sep", "maxsplit"});
  const int64_t limit = given.integer(1, -1);
  SplitArgs out{given.is_none(0), {}, limit < 0 ? SIZE_MAX : static_cast<size_t>(limit)};
  if (!out.by_space) out.separator = given.text(0, "");
  if (!out.by_space && out.separator.empty()) raise("empty separator");
  runtime.step_bytes(self.text().bytes.size());
  return out;
}

size_t word_end(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const size_t start = i;
    if (is_space(next_code_point(text, i))) return start;
  }
  return i;
}

size_t word_start(std::string_view text) {
  size_t i = text.size();
  while (i > 0) {
    size_t start = previous_start(text, i);
    size_t next = start;
    if (is_space(next_code_point(text, next))) return i;
    i = start;
  }
  return 0;
}

Value split(Runtime& runtime, const Value& self, const Args& args) {
  const SplitArgs how = split_args(runtime, self, args);
  std::string_view rest = self.text().bytes;
  std::vector<std::string_view> parts;
  if (how.by_space) {
    rest = strip(rest, std::nullopt, true, false);
    while (!rest.empty() && parts.size() < how.max_parts) {
      const size_t end = word_end(rest);
      parts.push_back(rest.substr(0, end));
      rest = strip(rest.substr(end), std::nullopt, true, false);
    }
    if (!rest.empty()) parts.push_back(rest);
    return pieces(runtime, parts);
  }
  while (parts.size() < how.max_parts) {
    const size_t found = find_text(rest, how.separator);
    if (found == std::string_view::npos) break;
    parts.push_back(rest.substr(0, found));
    rest = rest.substr(found + how.separator.size());
  }
  parts.push_back(rest);
  return pieces(runtime, parts);
}

Value rsplit(Runtime& runtime, const Value& self, const Args& args) {
  const SplitArgs how = split_args(runtime, self, args);
  std::string_view rest = self.text().bytes;
  std::vector<std::string_view> parts;
  if (how.by_space) {
    rest = strip(rest, std::nullopt, false, true);
    while (!rest.empty() && parts.size() < how.max_parts) {
      const size_t start = word_start(rest);
      parts.push_back(rest.substr(start));
      rest = strip(rest.substr(0, start), std::nullopt, false, true);
    }
    if (!rest.empty()) parts.push_back(rest);
  } else {
    // Searched backwards in the reversed text, which is linear.
    const std::string text(rest.rbegin(), rest.rend());
    const std::string separator(how.separator.rbegin(), how.separator.rend());
    size_t at = 0;
    while (parts.size() < how.max_parts) {
      const size_t found = find_text(text, separator, at);
      if (found == std::string_view::npos) break;
      parts.push_back(rest.substr(rest.size() - found, found - at));
      at = found + separator.size();
    }
    parts.push_back(rest.substr(0, rest.size() - at));
  }
  std::reverse(parts.begin(), parts.end());
  return pieces(runtime, parts);
}

Value splitlines(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("splitlines", args, {"keepends"});
  runtime.step_bytes(self.text().bytes.size());
  return pieces(runtime, split_lines(self.text().bytes, given.flag(0, false)));
}

Value cut(Runtime& runtime, const Value& self, const Args& args, bool from_right) {
  const Bound given("partition", args, {"sep"}, 1);
  const std::string_view text = self.text().bytes;
  const std::string_view separator = given.text(0, "");
  if (separator.empty()) raise("empty separator");
  runtime.step_bytes(text.size());
  const size_t found = from_right ? rfind_text(text, separator) : find_text(text, separator);
  const auto make = [&](std::string_view a, std::string_view b, std::string_view c) {
    return runtime.tuple({runtime.text(a), runtime.text(b), runtime.text(c)});
  };
  if (found == std::string_view::npos) return from_right ? make("", "", text) : make(text, "", "");
  return make(text.substr(0, found), separator, text.substr(found + separator.size()));
}

Value partition(Runtime& runtime, const Value& self, const Args& args) {
  return cut(runtime, self, args, false);
}

Value rpartition(Runtime& runtime, const Value& self, const Args& args) {
  return cut(runtime, self, args, true);
}

// The part of self that the arguments start and end (in characters) leave.
struct Part {
  std::string_view text;
  int64_t start;  // in characters
  bool valid;     // false: start is past the end, not even "" is found
};

Part part_of(Runtime& runtime, const Value& self, const Bound& given) {
  const Text& text = self.text();
  runtime.step_bytes(text.bytes.size());
  const auto bound = [&](size_t i, int64_t fallback) {
    int64_t index = given.is_none(i) ? fallback : given.integer(i, fallback);
    if (index < 0) index = std::max<int64_t>(0, index + text.length);
    return index;
  };
  const int64_t start = bound(1, 0);
  const int64_t end = std::min(bound(2, text.length), text.length);
  if (start > end) return {{}, start, false};
  const size_t first = byte_offset(text.bytes, start);
  const size_t last = byte_offset(text.bytes, end);
  return {std::string_view(text.bytes).substr(first, last - first), start, true};
}

std::optional<int64_t> position(Runtime& runtime, const Value& self, const Args& args,
                                bool from_right) {
  const Bound given("find", args, {"sub", "start", "end"}, 1);
  const Part part = part_of(runtime, self, given);
  const std::string_view needle = given.text(0, "");
  if (!part.valid) return std::nullopt;
  const size_t found = from_right ? rfind_text(part.text, needle) : find_text(part.text, needle);
  if (found == std::string_view::npos) return std::nullopt;
  return part.start + count_code_points(part.text.substr(0, found));
}

Value find(Runtime& runtime, const Value& self, const Args& args) {
  return Value(position(runtime, self, args, false).value_or(-1));
}

Value rfind(Runtime& runtime, const Value& self, const Args& args) {
  return Value(position(runtime, self, args, true).value_or(-1));
}

Value index(Runtime& runtime, const Value& self, const Args& args) {
  const auto found = position(runtime, self, args, false);
  if (!found) raise("substring not found");
  return Value(*found);
}

Value rindex(Runtime& runtime, const Value& self, const Args& args) {
  const auto found = position(runtime, self, args, true);
  if (!found) raise("substring not found");
  return Value(*found);
}

Value count(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("count", args, {"sub", "start", "end"}, 1);
  const Part part = part_of(runtime, self, given);
  const std::string_view needle = given.text(0, "");
  if (!part.valid) return Value(int64_t{0});
  if (needle.empty()) return Value(count_code_points(part.text) + 1);
  int64_t total = 0;
  for (size_t at = find_text(part.text, needle); at != std::string_view::npos;
       at = find_text(part.text, needle, at + needle.size())) {
    ++total;
  }
  return Value(total);
}

// startswith and endswith: of one text, or of any in a tuple.
Value has_affix(Runtime& runtime, const Value& self, const Args& args, bool at_start) {
  const Bound given(at_start ? "startswith" : "endswith", args, {"prefix", "start", "end"}, 1);
  const Part part = part_of(runtime, self, given);
  std::vector<Value> candidates{*given[0]};
  const bool is_tuple = given[0]->is(Kind::sequence) && given[0]->sequence().form == Form::tuple;
  if (is_tuple) candidates = given[0]->sequence().items;
  for (const Value& candidate : candidates) {
    if (!candidate.is(Kind::text)) {
      raise(at_start ? "startswith" : "endswith", "() needs a string or a tuple of strings, got ",
            type_name(candidate));
    }
    runtime.step_bytes(candidate.text().bytes.size());
    const std::string& affix = candidate.text().bytes;
    if (!part.valid) continue;
    if (at_start ? part.text.starts_with(affix) : part.text.ends_with(affix)) return Value(true);
  }
  return Value(false);
}

Value startswith(Runtime& runtime, const Value& self, const Args& args) {
  return has_affix(runtime, self, args, true);
}

Value endswith(Runtime& runtime, const Value& self, const Args& args) {
  return has_affix(runtime, self, args, false);
}

constexpr std::array<NamedNative, 12> kMethods = {{
    {"split", split},
    {"rsplit", rsplit},
    {"splitlines", splitlines},
    {"partition", partition},
    {"rpartition", rpartition},
    {"find", find},
    {"rfind", rfind},
    {"index", index},
    {"rindex", rindex},
    {"count", count},
    {"startswith", startswith},
    {"endswith", endswith},
}};

}  // namespace

std::span<const NamedNative> split_methods() {
  return kMethods;
}

}  // namespace rbee::text::jinja
