#include "rbee/grammar/schema_validator.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "rbee/grammar/formats.h"
#include "rbee/grammar/json_decimal.h"
#include "rbee/grammar/json_multiples.h"
#include "rbee/grammar/regex.h"
#include "rbee/grammar/schema_keywords.h"
#include "rbee/grammar/schema_logic.h"

namespace rbee::grammar {
namespace {

// At a keyword, at some values of a list or at a byte; less than a second's work in all.
constexpr int64_t kMaxLooks = 2'000'000;
constexpr size_t kAtOnce = 16;  // values of a list, or bytes that are compared

JsonDecimal decimal_of(const Schema& number) {
  return JsonDecimal(number_text(number));
}

// How integers are written; others, beyond 64 bits too, by their decimals.
std::string normal_number(const Schema& number) {
  if (number.is_number_integer()) return number.dump();
  if (number.is_number_float()) {
    const auto value = number.get<double>();
    const bool whole = std::floor(value) == value;
    if (whole && value >= -0x1p63 && value < 0x1p63) {
      return std::to_string(static_cast<int64_t>(value));
    }
    if (whole && value >= 0 && value < 0x1p64) return std::to_string(static_cast<uint64_t>(value));
  }
  return decimal_of(number).text();
}

const Schema* find(const Schema& schema, const char* keyword) {
  const auto at = schema.find(keyword);
  return at == schema.end() ? nullptr : &*at;
}

// Where the schema has the keyword.
template <typename Test>
bool where(const Schema& schema, const char* keyword, Test test) {
  const Schema* value = find(schema, keyword);
  return value == nullptr || test(*value);
}

size_t count_characters(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

bool valid_number(const Schema& number, const Schema& schema, const std::string& place) {
  const auto compared = [&](const Schema& bound) { return compare_numbers(number, bound); };
  return where(schema, "minimum", [&](const Schema& x) { return compared(x) >= 0; }) &&
         where(schema, "maximum", [&](const Schema& x) { return compared(x) <= 0; }) &&
         where(schema, "exclusiveMinimum", [&](const Schema& x) { return compared(x) > 0; }) &&
         where(schema, "exclusiveMaximum", [&](const Schema& x) { return compared(x) < 0; }) &&
         where(schema, "multipleOf", [&](const Schema& x) {
           return decimal_of(number).is_multiple(json_step(x.get<double>(), false, place));
         });
}

bool valid_size(const Schema& schema, const char* least, const char* most, size_t size) {
  const auto count = static_cast<double>(size);
  return where(schema, least, [&](const Schema& x) { return count >= x.get<double>(); }) &&
         where(schema, most, [&](const Schema& x) { return count <= x.get<double>(); });
}

// The schemas that have an $anchor, by its name; the first of each.
void add_anchors(const Schema& schema, std::map<std::string, const Schema*>& out) {
  if (!schema.is_structured()) return;
  const Schema* own = schema.is_object() ? find(schema, "$anchor") : nullptr;
  if (own != nullptr && own->is_string()) out.try_emplace(own->get<std::string>(), &schema);
  for (const auto& [key, part] : schema.items()) {
    if (schema.is_object() && (key == "enum" || key == "const")) continue;
    add_anchors(part, out);
  }
}

// %XX of a URI's fragment.
std::string percent_decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    const char* digits = text.data() + i + 1;
    const bool coded = text[i] == '%' && i + 2 < text.size() &&
                       std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    out += coded ? static_cast<char>(byte) : text[i];
    if (coded) i += 2;
  }
  return out;
}

}  // namespace

const Schema& SchemaValidator::find_reference(const std::string& pointer,
                                              const std::string& place) {
  const auto want = [&](bool condition, std::string_view why) {
    check(condition, "json_schema", place, ": $ref ", pointer, why);
  };
  want(pointer.starts_with('#'), " does not begin with #");
  const std::string fragment = percent_decoded(pointer.substr(1));
  if (!fragment.empty() && fragment.front() != '/') {
    if (anchors_.empty()) add_anchors(root_, anchors_);
    const auto found = anchors_.find(fragment);
    want(found != anchors_.end(), " names no $anchor");
    return *found->second;
  }
  try {
    const Schema::json_pointer path(fragment);
    if (root_.contains(path)) return root_.at(path);
  } catch (const Schema::exception&) {
    want(false, " is no JSON pointer");
  }
  want(false, " points to nothing");
  return root_;
}

bool SchemaValidator::valid(const Schema& value, const Schema& schema, const std::string& place) {
  place_ = place;
  return valid(value, schema, 0);
}

bool SchemaValidator::valid(const Schema& value, const Schema& schema, int depth) {
  if (depth > kMaxSchemaDepth) {
    fail(Code::unsupported, "json_schema", place_, ": references that lead to each other");
  }
  look(1 + schema.size());
  if (schema.is_boolean()) return schema.get<bool>();
  refuse_keywords(schema, place_);
  const bool named =
      where(schema, "type", [&](const Schema& types) { return has_type(value, types); }) &&
      where(schema, "const", [&](const Schema& one) { return same(one, value); }) &&
      where(schema, "enum", [&](const Schema& list) {
        look(list.size() / kAtOnce);
        return std::ranges::any_of(list, [&](const Schema& one) { return same(one, value); });
      });
  if (!named || !valid_logic(value, schema, depth + 1)) return false;
  if (is_number_value(value)) return valid_number(value, schema, place_);
  if (value.is_string()) return valid_string(value.get_ref<const std::string&>(), schema);
  if (value.is_array()) return valid_array(value, schema, depth + 1);
  return !value.is_object() || valid_object(value, schema, depth + 1);
}

void SchemaValidator::look(size_t times) {
  looks_ += static_cast<int64_t>(times);
  if (looks_ <= kMaxLooks) return;
  fail(Code::unsupported, "json_schema", place_,
       ": there is too much to check of the values that it names");
}

bool SchemaValidator::same(const Schema& a, const Schema& b) {
  if (a.is_structured() && a.type() == b.type() && a.size() == b.size()) {
    const std::string text = value_text(a);
    look(1 + text.size() / kAtOnce);
    return text == value_text(b);
  }
  if (a.is_string() && b.is_string()) look(b.get_ref<const std::string&>().size() / kAtOnce);
  return same_value(a, b);
}

bool SchemaValidator::are_unique(const Schema& list) {
  std::set<std::string> known;
  return std::ranges::all_of(list, [&](const Schema& one) {
    std::string text = value_text(one);
    look(1 + text.size() / kAtOnce);
    return known.insert(std::move(text)).second;
  });
}

bool SchemaValidator::valid_logic(const Schema& value, const Schema& schema, int depth) {
  const auto holds = [&](const Schema& part) { return valid(value, part, depth); };
  const auto one = [&](const Schema& list) {
    const auto first = std::ranges::find_if(list, holds);
    return first != list.end() && std::none_of(std::next(first), list.end(), holds);
  };
  const bool plain =
      where(schema, "$ref",
            [&](const Schema& to) { return holds(resolve(to.get<std::string>(), place_)); }) &&
      where(schema, "allOf",
            [&](const Schema& list) { return std::ranges::all_of(list, holds); }) &&
      where(schema, "anyOf",
            [&](const Schema& list) { return std::ranges::any_of(list, holds); }) &&
      where(schema, "oneOf", one) &&
      where(schema, "not", [&](const Schema& part) { return !holds(part); });
  if (!plain || !schema.contains("if")) return plain;
  return where(schema, holds(schema["if"]) ? "then" : "else", holds);
}

bool SchemaValidator::valid_string(const std::string& value, const Schema& schema) {
  const auto matches = [&](const Schema& pattern) {
    return matches_anywhere(pattern.get<std::string>(), value, place_);
  };
  look(value.size() / kAtOnce);
  return valid_size(schema, "minLength", "maxLength", count_characters(value)) &&
         where(schema, "pattern", matches) &&
         where(schema, kMorePatterns,
               [&](const Schema& list) { return std::ranges::all_of(list, matches); }) &&
         where(schema, "format", [&](const Schema& name) {
           const Format* format = find_format(name.get<std::string>());
           if (format == nullptr) return true;
           const bool fits = format->max_length == kUnlimited ||
                             std::cmp_less_equal(count_characters(value), format->max_length);
           if (fits && matches_pattern(format->pattern, value, Match::whole, place_)) return true;
           fail(Code::unsupported, "json_schema", place_, ": format beside a value that is given");
         });
}

bool SchemaValidator::valid_array(const Schema& value, const Schema& schema, int depth) {
  if (!valid_size(schema, "minItems", "maxItems", value.size())) return false;
  const Schema* items = find(schema, "items");
  const Schema* prefix = find(schema, "prefixItems");
  // As until draft 2019-09.
  if (items != nullptr && items->is_array()) {
    prefix = std::exchange(items, find(schema, "additionalItems"));
  }
  const size_t first = prefix == nullptr ? 0 : prefix->size();
  for (size_t i = 0; i < value.size(); ++i) {
    const Schema* part = i < first ? &(*prefix)[i] : items;
    if (part != nullptr && !valid(value[i], *part, depth)) return false;
  }
  const bool some = where(schema, "contains", [&](const Schema& part) {
    return schema.value("minContains", Schema(1)) == 0 ||
           std::ranges::any_of(value, [&](const Schema& item) { return valid(item, part, depth); });
  });
  return some && (schema.value("uniqueItems", Schema(false)) != true || are_unique(value));
}

bool SchemaValidator::valid_object(const Schema& value, const Schema& schema, int depth) {
  if (!valid_size(schema, "minProperties", "maxProperties", value.size())) return false;
  const auto there = [&](const Schema& name) {
    look(1 + value.size() / kAtOnce);
    return value.contains(name.get_ref<const std::string&>());
  };
  const auto all_there = [&](const Schema& names) { return std::ranges::all_of(names, there); };
  if (!where(schema, "required", all_there)) return false;
  const auto each_dependent = [&](const Schema& list) {
    for (const auto& [name, needs] : list.items()) {
      if (!there(name)) continue;
      if (!(needs.is_array() ? all_there(needs) : valid(value, needs, depth))) return false;
    }
    return true;
  };
  for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    if (!where(schema, keyword, each_dependent)) return false;
  }
  const auto members = value.items();
  return std::all_of(members.begin(), members.end(), [&](const auto& member) {
    return valid_member(member.key(), member.value(), schema, depth);
  });
}

bool SchemaValidator::valid_member(const std::string& name, const Schema& value,
                                   const Schema& schema, int depth) {
  bool known = false;
  const bool valid_named = where(schema, "properties", [&](const Schema& list) {
    look(list.size() / kAtOnce);
    const auto at = list.find(name);
    known = at != list.end();
    return !known || valid(value, *at, depth);
  });
  if (!valid_named) return false;
  if (const Schema* patterns = find(schema, "patternProperties")) {
    for (const auto& [pattern, part] : patterns->items()) {
      if (!matches_anywhere(pattern, name, place_)) continue;
      known = true;
      if (!valid(value, part, depth)) return false;
    }
  }
  const auto fits = [&](const Schema& part) { return valid(value, part, depth); };
  return (known || where(schema, "additionalProperties", fits)) &&
         where(schema, "propertyNames",
               [&](const Schema& part) { return valid(Schema(name), part, depth); });
}

bool SchemaValidator::matches_anywhere(const std::string& pattern, std::string_view text,
                                       const std::string& place) {
  return matches_pattern(pattern, text, Match::anywhere, place);
}

bool SchemaValidator::matches_pattern(const std::string& pattern, std::string_view text,
                                      Match match, const std::string& place) {
  auto& known = match == Match::anywhere ? patterns_ : formats_;
  auto at = known.find(pattern);
  if (at == known.end()) {
    const ExprPtr expr = parse_regex(cat("json_schema: ", place, "/pattern"), pattern, {}, match);
    at = known.try_emplace(pattern, expr, place, pattern_work_).first;
  }
  look(1 + text.size());
  return at->second.holds(text);
}

const Schema& SchemaValidator::resolve(const std::string& pointer, const std::string& place) {
  const Schema*& known = references_[pointer];
  if (known == nullptr) {
    known = &find_reference(pointer, place);
    if (checked_.insert(known).second) check_keywords(*known, pointer);
  }
  return *known;
}

bool is_number_value(const Schema& value) {
  return value.is_number() || value.is_binary();
}

std::string number_text(const Schema& number) {
  if (!number.is_binary()) return number.dump();
  const Schema::binary_t& text = number.get_binary();
  return {text.begin(), text.end()};
}

double nearest_double(const Schema& number) {
  return number.is_binary() ? std::strtod(number_text(number).c_str(), nullptr)
                            : number.get<double>();
}

// `long double` has all integers of 64 bits.
std::partial_ordering compare_numbers(const Schema& a, const Schema& b) {
  if (a.is_binary() || b.is_binary()) return decimal_of(a) <=> decimal_of(b);
  return a.get<long double>() <=> b.get<long double>();
}

__int128 last_integer(const Schema& bound, bool upper) {
  return upper ? decimal_of(bound).floor() : -decimal_of(bound).negated().floor();
}

std::string json_text(const Schema& value) {
  if (!value.is_structured()) return value.is_binary() ? number_text(value) : value.dump();
  const bool object = value.is_object();
  std::string out;
  for (const auto& [name, part] : value.items()) {
    out +=
        cat(out.empty() ? "" : ",", object ? cat(Schema(name).dump(), ":") : "", json_text(part));
  }
  return object ? cat("{", out, "}") : cat("[", out, "]");
}

std::string value_text(const Schema& value) {
  if (is_number_value(value)) return normal_number(value);
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [name, part] : value.items()) {
    parts.push_back(value.is_object() ? cat(Schema(name).dump(), ":", value_text(part))
                                      : value_text(part));
  }
  if (value.is_object()) std::ranges::sort(parts);
  std::string out = value.is_object() ? "{" : "[";
  for (const std::string& part : parts) out += part + ",";
  return out + (value.is_object() ? "}" : "]");
}

bool same_value(const Schema& a, const Schema& b) {
  const bool by_texts = is_number_value(a) && (a.is_binary() || b.is_binary());
  if (!a.is_structured() && !by_texts) return a == b;
  const bool alike = by_texts ? is_number_value(b) : a.type() == b.type() && a.size() == b.size();
  return alike && value_text(a) == value_text(b);
}

std::string_view type_of(const Schema& value) {
  switch (value.type()) {
    case Schema::value_t::null:
      return "null";
    case Schema::value_t::boolean:
      return "boolean";
    case Schema::value_t::string:
      return "string";
    case Schema::value_t::array:
      return "array";
    case Schema::value_t::object:
      return "object";
    case Schema::value_t::number_integer:
    case Schema::value_t::number_unsigned:
      return "integer";
    case Schema::value_t::binary:
      return decimal_of(value).is_integer() ? "integer" : "number";
    default:
      return std::floor(value.get<double>()) == value.get<double>() ? "integer" : "number";
  }
}

bool has_type(const Schema& value, const Schema& types) {
  const std::string_view type = type_of(value);
  for (const Schema& wanted : types.is_array() ? types : Schema::array({types})) {
    if (wanted == type || (wanted == "number" && type == "integer")) return true;
  }
  return false;
}

}  // namespace rbee::grammar
