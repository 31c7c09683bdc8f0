// Strings and numbers of JSON schemas.

#include <algorithm>
#include <array>
#include <cmath>

#include "rbee/grammar/formats.h"
#include "rbee/grammar/json_multiples.h"
#include "rbee/grammar/json_numbers.h"
#include "rbee/grammar/regex.h"
#include "rbee/grammar/schema_parts.h"
#include "rbee/grammar/schema_validator.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxLeast = 100'000;
// A context of a million tokens has about this many characters. What an answer cannot reach bounds
// nothing: code generators write 2147483647 where no bound is meant.
constexpr int64_t kMaxMost = 4'000'000;
constexpr int64_t kFewCharacters = 16;
constexpr double kMaxExact = 9007199254740992;  // 2^53: from there on doubles skip integers

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  fail(Code::unsupported, "json_schema", place, ": ", why);
}

// Null without a format, and for unknown ones, which by JSON Schema say nothing.
const Format* format_of(const Schema& schema) {
  return schema.contains("format") ? find_format(schema["format"].get<std::string>()) : nullptr;
}

std::vector<std::string> patterns_of(const Schema& schema) {
  std::vector<std::string> out = schema.value(kMorePatterns, std::vector<std::string>{});
  if (schema.contains("pattern")) out.push_back(schema["pattern"].get<std::string>());
  return out;
}

ExprPtr parse_pattern(const std::string& pattern, const std::string& place) {
  return parse_regex(cat("json_schema: ", place, "/pattern"), pattern, JsonRules::string_chars,
                     Match::anywhere);
}

ExprPtr parse_format(const Format& format, const std::string& place) {
  return parse_regex(place, format.pattern, JsonRules::string_chars);
}

struct Lengths {
  int64_t min, max;
  bool given() const { return min > 0 || max != kUnlimited; }
};

Lengths lengths_of(const Schema& schema, const std::string& place) {
  const Lengths out{least_of(schema, "minLength", place), most_of(schema, "maxLength")};
  if (out.max != kUnlimited && out.min > out.max) {
    throw NothingFits(place, "minLength is above maxLength");
  }
  return out;
}

// With what the format says of them.
Lengths all_lengths_of(const Schema& schema, const std::string& place) {
  Lengths out = lengths_of(schema, place);
  const Format* format = format_of(schema);
  if (format == nullptr || format->max_length == kUnlimited) return out;
  if (out.min > format->max_length) throw NothingFits(place, "minLength is above the format's");
  if (out.max == kUnlimited || out.max > format->max_length) out.max = format->max_length;
  return out;
}

ExprPtr plain_char() {
  return JsonRules::string_chars({{0, 0x10FFFF}});
}

[[noreturn]] void no_string_fits(const std::string& place) {
  throw NothingFits(place, "no string fits all that is asked of it");
}

// Strings of these lengths that are of a format and all patterns, and are not excluded, each
// character written in one way.
TextSet plain_texts(SchemaBuilder& builder, const Schema& schema, const Lengths& lengths,
                    const std::string& place) {
  int64_t& work = builder.text_work();
  TextSet out(repeat(plain_char(), lengths.min, lengths.max), place, work);
  if (const Format* format = format_of(schema)) {
    auto& known = builder.texts_of_formats();
    const auto name = schema["format"].get<std::string>();
    auto at = known.find(name);
    if (at == known.end()) {
      at = known.try_emplace(name, parse_format(*format, place), place, work).first;
    }
    out = TextSet::both(out, at->second, work);
  }
  const Excluded excluded = excluded_by(schema);
  for (const Schema& value : excluded.values) {
    if (!value.is_string()) continue;
    const std::string quoted = value.dump();
    out = TextSet::without(out, {literal(quoted.substr(1, quoted.size() - 2)), place, work}, work);
  }
  for (const std::string& pattern : excluded.patterns) {
    out = TextSet::without(out, {parse_pattern(pattern, place), place, work}, work);
  }
  for (const std::string& pattern : patterns_of(schema)) {
    out = TextSet::both(out, {parse_pattern(pattern, place), place, work}, work);
  }
  if (out.empty()) no_string_fits(place);
  return out;
}

// The same of the schema's lengths, which are counted where they would take many states.
ExprPtr plain_text(SchemaBuilder& builder, const Schema& schema, const std::string& place) {
  const Lengths lengths = all_lengths_of(schema, place);
  const int64_t count = lengths.max == kUnlimited ? lengths.min : lengths.max;
  if (count > kFewCharacters) {
    const TextSet set = plain_texts(builder, schema, {.min = 0, .max = kUnlimited}, place);
    const TextSet all(any_plain_string(), place, builder.text_work());
    if (auto counts = TextLengths::of(set, all, lengths.max)) {
      if (counts->all_within(lengths.min, lengths.max)) return set.expr();
      const auto most = lengths.max == kUnlimited ? kManyTimes : static_cast<int32_t>(lengths.max);
      if (!counts->fits(0, static_cast<int32_t>(lengths.min), most)) no_string_fits(place);
      return set.expr(std::move(counts), lengths.min, lengths.max);
    }
  }
  return plain_texts(builder, schema, lengths, place).expr();
}

struct Bound {
  double value;
  bool open;
};

// The tighter of the closed and the open keyword. sign: 1 for lower bounds, -1 for upper ones.
Bound bound_of(const Schema& schema, const char* closed, const char* open, double sign,
               const std::string& place) {
  Bound out{-sign * static_cast<double>(kMaxJsonInteger), false};
  for (const char* keyword : {closed, open}) {
    if (!schema.contains(keyword)) continue;
    const double value = nearest_double(schema[keyword]);
    const bool is_open = keyword == open;
    if (sign * value > sign * out.value || (value == out.value && is_open)) out = {value, is_open};
  }
  if (sign * out.value > static_cast<double>(kMaxJsonInteger)) {
    refuse(place, cat(closed, " is beyond 16 digits"));
  }
  const double size = std::fabs(out.value);
  if (size >= kMaxExact && size < static_cast<double>(kMaxJsonInteger)) {
    refuse(place, cat(closed, " between 2^53 and 10^16 is not supported"));
  }
  return out;
}

[[noreturn]] void no_number_fits(const std::string& place) {
  throw NothingFits(place, "no number lies between the bounds");
}

JsonBounds bounds_of(const Schema& schema, const std::string& place) {
  const Bound low = bound_of(schema, "minimum", "exclusiveMinimum", 1, place);
  const Bound high = bound_of(schema, "maximum", "exclusiveMaximum", -1, place);
  const bool some = low.value < high.value || (low.value == high.value && !low.open && !high.open);
  if (!some) no_number_fits(place);
  const auto bound = [&](const Bound& side, const char* keyword, bool upper) {
    // The double next to 16 nines has 17 digits.
    const bool given = std::fabs(side.value) < static_cast<double>(kMaxJsonInteger);
    if (given) return json_bound(side.value, side.open, place, keyword);
    return JsonBound{.negative = !upper, .open = side.open};
  };
  return {.low = bound(low, "minimum", false), .high = bound(high, "maximum", true)};
}

JsonIntegers integers_of(const Schema& schema, const std::string& place) {
  JsonIntegers out;
  for (const char* keyword : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
    if (!schema.contains(keyword)) continue;
    const std::string_view name = keyword;
    const bool upper = name.ends_with("aximum");
    __int128 last = last_integer(schema[keyword], upper);
    const bool open = name.starts_with("exclusive");
    if (open && last_integer(schema[keyword], !upper) == last) last += upper ? -1 : 1;
    if (upper ? last < -JsonIntegers::kMost : last > JsonIntegers::kMost) {
      refuse(place, cat(keyword, " is beyond 20 digits"));
    }
    if (upper) out.high = std::min(out.high, last);
    if (!upper) out.low = std::max(out.low, last);
  }
  if (out.low > out.high) no_number_fits(place);
  return out;
}

// All texts of a number, without an exponent.
ExprPtr texts_of_number(double value, const std::string& place) {
  const JsonBound number = json_bound(value, false, place, "a number of enum or const");
  const ExprPtr zeros = repeat(literal("0"), 0, kUnlimited);
  const ExprPtr whole = literal(std::to_string(number.whole));
  const ExprPtr digits = number.places.empty()
                             ? sequence({whole, optional(sequence({literal("."), zeros}))})
                             : sequence({whole, literal("."), literal(number.places), zeros});
  if (number.is_zero()) return sequence({optional(literal("-")), digits});
  return number.negative ? sequence({literal("-"), digits}) : digits;
}

// Numbers of at most 15 digits, as many as readers tell apart, without an exponent.
ExprPtr told_apart() {
  const auto digits = [](int64_t most) { return repeat(chars({{'0', '9'}}), 1, most); };
  std::vector<ExprPtr> ways{digits(15)};
  for (const int64_t whole : {1, 3, 6, 9, 12}) {
    ways.push_back(sequence({digits(whole), literal("."), digits(15 - whole)}));
  }
  return sequence({optional(literal("-")), choice(std::move(ways))});
}

ExprPtr without(const ExprPtr& numbers, const Excluded& excluded, const std::string& place,
                int64_t& work) {
  TextSet out = TextSet::both({numbers, place, work}, {told_apart(), place, work}, work);
  if (excluded.integers) {
    const ExprPtr digits = repeat(chars({{'0', '9'}}), 1, kUnlimited);
    const ExprPtr zeros = sequence({literal("."), repeat(literal("0"), 0, kUnlimited)});
    out = TextSet::without(
        out, {sequence({optional(literal("-")), digits, optional(zeros)}), place, work}, work);
  }
  for (const Schema& value : excluded.values) {
    if (!value.is_number()) continue;  // those that are texts have more digits than are written
    out = TextSet::without(out, {texts_of_number(value.get<double>(), place), place, work}, work);
  }
  if (out.empty()) throw NothingFits(place, "no number fits all that is asked of it");
  return out.expr();
}

ExprPtr make_string(SchemaBuilder& builder, const Schema& schema, const std::string& place) {
  const Lengths lengths = all_lengths_of(schema, place);
  const std::vector<std::string> patterns = patterns_of(schema);
  const Excluded excluded = excluded_by(schema);
  const bool excludes =
      !excluded.patterns.empty() || std::ranges::any_of(excluded.values, &Schema::is_string);
  const Format* format = format_of(schema);
  const int kinds = static_cast<int>(patterns.size()) + static_cast<int>(format != nullptr) +
                    lengths.given() + excludes;
  JsonRules& rules = builder.rules();
  if (kinds == 0) return rules.string();
  ExprPtr pattern;
  if (kinds == 1 && !patterns.empty()) {
    pattern = parse_pattern(patterns.front(), place);
    if (pattern->kind != Expr::Kind::texts || !pattern->set->empty()) {
      return rules.add(place, JsonRules::quoted(std::move(pattern)));
    }
  }
  if (kinds > 1 || excludes || pattern) {
    return rules.add(place, JsonRules::quoted(plain_text(builder, schema, place)));
  }
  if (format != nullptr) return rules.add(place, JsonRules::quoted(parse_format(*format, place)));
  return rules.add(place,
                   JsonRules::quoted(repeat(JsonRules::string_char(), lengths.min, lengths.max)));
}

ExprPtr make_number(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                    bool integer) {
  JsonRules& rules = builder.rules();
  const Excluded excluded = excluded_by(schema);
  const bool excludes = excluded.integers || std::ranges::any_of(excluded.values, &is_number_value);
  if (schema.contains("multipleOf")) {
    const JsonStep step = json_step(schema["multipleOf"].get<double>(), integer, place);
    int64_t& work = builder.text_work();
    const ExprPtr numbers =
        integer ? json_multiples(step.numerator, integers_of(schema, place), place, work)
                : json_multiples(step, bounds_of(schema, place), place, work);
    return rules.add(place, excludes ? without(numbers, excluded, place, work) : numbers);
  }
  const DigitRuns runs = [&](int64_t least, int64_t most) { return rules.digits(least, most); };
  if (integer) {
    const JsonIntegers bounds = integers_of(schema, place);
    if (!excludes)
      return bounds.any() ? rules.integer() : rules.add(place, json_integer(bounds, runs));
    return rules.add(place, without(json_integer(bounds), excluded, place, builder.text_work()));
  }
  JsonBounds bounds = bounds_of(schema, place);
  if (!excludes) return bounds.any() ? rules.number() : rules.add(place, json_number(bounds, runs));
  // Between bounds there are no exponents, by which one number has many texts.
  if (bounds.any()) bounds.low.whole = bounds.high.whole = kMaxJsonInteger - 1;
  return rules.add(place, without(json_number(bounds), excluded, place, builder.text_work()));
}

}  // namespace

int64_t least_of(const Schema& schema, const char* keyword, const std::string& place) {
  if (!schema.contains(keyword)) return 0;
  const double value = schema[keyword].get<double>();
  if (value > static_cast<double>(kMaxLeast)) refuse(place, cat(keyword, " is above ", kMaxLeast));
  return static_cast<int64_t>(value);
}

int64_t most_of(const Schema& schema, const char* keyword) {
  if (!schema.contains(keyword)) return kUnlimited;
  const double value = schema[keyword].get<double>();
  return value > static_cast<double>(kMaxMost) ? kUnlimited : static_cast<int64_t>(value);
}

ExprPtr any_plain_string() {
  return repeat(plain_char(), 0, kUnlimited);
}

ExprPtr string_of_schema(SchemaBuilder& builder, const Schema& schema, const std::string& place) {
  static constexpr std::array kAsk{"format",  "minLength",   "maxLength",
                                   "pattern", kMorePatterns, "not"};
  return builder.once(schema, "string", kAsk, [&] {
    try {
      return make_string(builder, schema, place);
    } catch (const NothingFits&) {
      if (!schema.contains("format") || !schema.contains("pattern")) throw;
    }
    // A format is a note alone by the standard: zod names `time` beside a pattern without offsets.
    Schema rest = schema;
    rest.erase("format");
    return make_string(builder, rest, place);
  });
}

ExprPtr plain_strings(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                      int depth) {
  std::vector<ExprPtr> out;
  for (const Schema& way : builder.logic().ways(schema, place, depth)) {
    if (way.contains("type") && !has_type("", way["type"])) continue;
    const auto few = builder.logic().named_values(way, place);
    if (!few) {
      const TextSet texts = plain_texts(builder, way, all_lengths_of(way, place), place);
      out.push_back(JsonRules::quoted(texts.expr()));
      continue;
    }
    for (const Schema& value : *few) {
      if (value.is_string()) out.push_back(literal(value.dump()));
    }
  }
  return choice(std::move(out));
}

ExprPtr number_of_schema(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                         bool integer) {
  static constexpr std::array kAsk{"minimum",          "maximum",    "exclusiveMinimum",
                                   "exclusiveMaximum", "multipleOf", "not"};
  return builder.once(schema, integer ? "integer" : "number", kAsk,
                      [&] { return make_number(builder, schema, place, integer); });
}

}  // namespace rbee::grammar
