#include "rbee/grammar/json_rules.h"

#include <algorithm>
#include <map>

#include "rbee/core/cat.h"
#include "rbee/grammar/budget.h"
#include "rbee/grammar/json_numbers.h"
#include "rbee/grammar/utf8_ranges.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxIndent = 20;
constexpr int64_t kFewDigits = 2;     // fewer states than a call of a rule saves
constexpr size_t kToldApart = 128;    // characters by which other names differ from named ones
constexpr int64_t kBytesOfWork = 16;  // of a rule's name, which is copied
const std::vector<CharRange> kEscaped{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};

ExprPtr hex_digits(int64_t count) {
  return repeat(chars({{'0', '9'}, {'a', 'f'}, {'A', 'F'}}), count, count);
}

// \uXXXX of a character, or of the two halves of one.
ExprPtr unicode_escape() {
  const ExprPtr d = chars({{'d', 'd'}, {'D', 'D'}});
  const ExprPtr whole =
      choice({sequence({chars({{'0', '9'}, {'a', 'c'}, {'e', 'f'}, {'A', 'C'}, {'E', 'F'}}),
                        hex_digits(3)}),
              sequence({d, chars({{'0', '7'}}), hex_digits(2)})});
  const ExprPtr pair =
      sequence({d, chars({{'8', '9'}, {'a', 'b'}, {'A', 'B'}}), hex_digits(2), literal("\\u"), d,
                chars({{'c', 'f'}, {'C', 'F'}}), hex_digits(2)});
  return sequence({literal("\\u"), choice({whole, pair})});
}

// The escape that has to be used for one of kEscaped.
std::string escape(char32_t c) {
  constexpr std::string_view kPlain = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  const size_t at = kPlain.find(static_cast<char>(c));
  if (at != std::string_view::npos) return {'\\', kLetters[at]};
  constexpr std::string_view kHex = "0123456789abcdef";
  return {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
}

bool holds(const std::vector<CharRange>& ranges, char32_t c) {
  return std::ranges::any_of(ranges, [&](const CharRange& r) { return r.low <= c && c <= r.high; });
}

// Names by their first character. Nothing with the beginning of a longer name is another name: the
// expression is as deep as what it tells apart, and all that read it recurse.
ExprPtr none_of(const std::vector<std::u32string_view>& names, size_t depth) {
  if (depth == kToldApart) return choice({});
  const ExprPtr any = chars_except(kEscaped);
  std::map<char32_t, std::vector<std::u32string_view>> by_char;
  bool taken = false;  // what was read so far is a name
  for (const std::u32string_view name : names) {
    if (name.size() == depth) {
      taken = true;
    } else {
      by_char[name[depth]].push_back(name);
    }
  }
  std::vector<CharRange> others = kEscaped;
  std::vector<ExprPtr> ways;
  if (!taken) ways.push_back(sequence({}));
  for (const auto& [c, rest] : by_char) {
    others.push_back({c, c});
    ways.push_back(sequence({chars({{c, c}}), none_of(rest, depth + 1)}));
  }
  ways.push_back(sequence({chars_except(others), repeat(any, 0, kUnlimited)}));
  return choice(std::move(ways));
}

std::u32string code_points(const std::string& text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t c = length == 1 ? lead : lead & (0x7F >> length);
    for (size_t k = 1; k < length && i + k < text.size(); ++k) {
      c = (c << 6) | (static_cast<uint8_t>(text[i + k]) & 0x3F);
    }
    out += c;
    i += length;
  }
  return out;
}

}  // namespace

ExprPtr JsonRules::add(std::string name, ExprPtr body) {
  const int32_t index = reserve(std::move(name));
  define(index, std::move(body));
  return rule(index);
}

int32_t JsonRules::reserve(std::string name) {
  const int64_t bytes = std::ssize(name);
  bill({.work = bytes / kBytesOfWork, .bytes = bytes + int64_t{sizeof(Rule)}});
  grammar_.rules.push_back({std::move(name), nullptr});
  return static_cast<int32_t>(grammar_.rules.size() - 1);
}

void JsonRules::define(int32_t rule, ExprPtr body) {
  grammar_.rules[static_cast<size_t>(rule)].body = std::move(body);
}

Grammar JsonRules::finish(ExprPtr root) {
  grammar_.root = reserve("root");
  define(grammar_.root, std::move(root));
  return std::move(grammar_);
}

// The rule is known before its body is made, which may use it.
ExprPtr JsonRules::once(std::optional<int32_t>& rule, const char* name,
                        ExprPtr (JsonRules::*body)()) {
  if (!rule) {
    rule = reserve(name);
    ExprPtr made = (this->*body)();
    define(*rule, std::move(made));
  }
  return grammar::rule(*rule);
}

ExprPtr JsonRules::space() {
  return once(space_, "space", &JsonRules::space_body);
}
ExprPtr JsonRules::value() {
  return once(value_, "value", &JsonRules::value_body);
}
ExprPtr JsonRules::object() {
  return once(object_, "object", &JsonRules::object_body);
}
ExprPtr JsonRules::array() {
  return once(array_, "array", &JsonRules::array_body);
}
ExprPtr JsonRules::string() {
  return once(string_, "string", &JsonRules::string_body);
}
ExprPtr JsonRules::number() {
  return once(number_, "number", &JsonRules::number_body);
}
ExprPtr JsonRules::integer() {
  return once(integer_, "integer", &JsonRules::integer_body);
}

ExprPtr JsonRules::digits(int64_t least, int64_t most) {
  if (most <= kFewDigits) return digit_run(least, most);
  if (least == 0) return optional(digits(1, most));
  ExprPtr& known = digits_[{least, most}];
  if (!known) known = add(cat("digits ", least, " to ", most), digit_run(least, most));
  return known;
}

ExprPtr JsonRules::boolean() {
  return choice({literal("true"), literal("false")});
}

ExprPtr JsonRules::null() {
  return literal("null");
}

ExprPtr JsonRules::space_body() {
  const ExprPtr indent = repeat(chars({{' ', ' '}, {'\t', '\t'}}), 0, kMaxIndent);
  return choice({sequence({}), literal(" "), sequence({literal("\n"), indent})});
}

ExprPtr JsonRules::value_body() {
  return choice({object(), array(), string(), number(), boolean(), null()});
}

ExprPtr JsonRules::object_body() {
  const ExprPtr one = pair(string(), value());
  const ExprPtr more = repeat(sequence({literal(","), space(), one}), 0, kUnlimited);
  return sequence({literal("{"), space(), optional(sequence({one, more, space()})), literal("}")});
}

ExprPtr JsonRules::array_body() {
  return list({}, value(), 0, kUnlimited);
}

ExprPtr JsonRules::string_body() {
  return quoted(repeat(string_char(), 0, kUnlimited));
}

ExprPtr JsonRules::number_body() {
  return json_number({});
}

ExprPtr JsonRules::integer_body() {
  return json_integer({});
}

ExprPtr JsonRules::quoted(ExprPtr characters) {
  return sequence({literal("\""), std::move(characters), literal("\"")});
}

ExprPtr JsonRules::string_char() {
  const ExprPtr letter = chars({{'"', '"'},
                                {'/', '/'},
                                {'\\', '\\'},
                                {'b', 'b'},
                                {'f', 'f'},
                                {'n', 'n'},
                                {'r', 'r'},
                                {'t', 't'}});
  return choice({chars_except(kEscaped), sequence({literal("\\"), letter}), unicode_escape()});
}

ExprPtr JsonRules::string_chars(const std::vector<CharRange>& ranges) {
  std::vector<CharRange> outside = complement(ranges);
  outside.insert(outside.end(), kEscaped.begin(), kEscaped.end());
  std::vector<ExprPtr> ways{chars_except(std::move(outside))};
  for (const CharRange& range : kEscaped) {
    for (char32_t c = range.low; c <= range.high; ++c) {
      if (holds(ranges, c)) ways.push_back(literal(escape(c)));
    }
  }
  return choice(std::move(ways));
}

ExprPtr JsonRules::pair(ExprPtr key, ExprPtr value) {
  return sequence({std::move(key), space(), literal(":"), space(), std::move(value)});
}

// Without escapes, so that no name can be spelled in another way.
ExprPtr JsonRules::other_key(const std::vector<std::string>& names) {
  if (names.empty()) return string();
  std::vector<std::u32string> texts;
  for (const std::string& name : names) {
    std::u32string text = code_points(name);
    const bool needs_escapes =
        std::ranges::any_of(text, [](char32_t c) { return holds(kEscaped, c); });
    if (!needs_escapes) texts.push_back(std::move(text));
  }
  return quoted(none_of({texts.begin(), texts.end()}, 0));
}

ExprPtr JsonRules::list(const std::vector<ExprPtr>& first, const ExprPtr& more, int64_t min,
                        int64_t max) {
  std::vector<ExprPtr> parts;
  const auto add_item = [&](const ExprPtr& item) {
    if (!parts.empty()) parts.insert(parts.end(), {literal(","), space()});
    parts.push_back(item);
  };
  for (const ExprPtr& item : first) add_item(item);
  bool may_be_empty = false;
  if (max != 0) {
    if (first.empty()) {
      may_be_empty = min == 0;
      add_item(more);
      min = std::max<int64_t>(min - 1, 0);
      if (max != kUnlimited) --max;
    }
    parts.push_back(repeat(sequence({literal(","), space(), more}), min, max));
  }
  if (!parts.empty()) parts.push_back(space());
  ExprPtr items = sequence(std::move(parts));
  if (may_be_empty) items = optional(std::move(items));
  return sequence({literal("["), space(), std::move(items), literal("]")});
}

}  // namespace rbee::grammar
