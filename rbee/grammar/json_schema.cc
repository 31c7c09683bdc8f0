#include "rbee/grammar/json_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "rbee/core/error.h"
#include "rbee/grammar/formats.h"
#include "rbee/grammar/json_multiples.h"
#include "rbee/grammar/json_numbers.h"
#include "rbee/grammar/json_rules.h"
#include "rbee/grammar/regex.h"
#include "rbee/grammar/schema_merge.h"

namespace rbee::grammar {
namespace {

constexpr int kMaxSchemaDepth = 64;
constexpr int64_t kMaxCount = 100'000;
// More optional properties in a row are rules of their own, so that the grammar stays small.
constexpr size_t kMaxInlined = 32;

constexpr std::array<std::string_view, 21> kRefused{"not",
                                                    "if",
                                                    "then",
                                                    "else",
                                                    "patternProperties",
                                                    "propertyNames",
                                                    "minProperties",
                                                    "maxProperties",
                                                    "uniqueItems",
                                                    "contains",
                                                    "minContains",
                                                    "maxContains",
                                                    "dependentRequired",
                                                    "dependentSchemas",
                                                    "dependencies",
                                                    "unevaluatedProperties",
                                                    "unevaluatedItems",
                                                    "additionalItems",
                                                    "$dynamicRef",
                                                    "$recursiveRef",
                                                    "$anchor"};

// Keywords that say what a value is like; beside enum and const they are not looked at but for
// type.
constexpr std::array<std::string_view, 16> kAssertions{
    "properties", "required",         "additionalProperties",
    "items",      "prefixItems",      "minItems",
    "maxItems",   "pattern",          "minLength",
    "maxLength",  "format",           "minimum",
    "maximum",    "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf"};

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  fail(Code::unsupported, "json_schema", place, ": ", why);
}

void want(bool condition, const std::string& place, const std::string& why) {
  check(condition, "json_schema", place, ": ", why);
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
    default:
      return "number";
  }
}

class Converter {
 public:
  explicit Converter(const Schema& root) : root_(root) {}

  Grammar run() {
    ExprPtr top = convert(root_, "#", 0);
    return rules_.finish(std::move(top));
  }

 private:
  ExprPtr convert(const Schema& schema, const std::string& place, int depth);
  ExprPtr reference(const Schema& schema, const std::string& place, int depth);
  const Schema& resolve(const std::string& pointer, const std::string& place) const;
  Schema flatten(const Schema& schema, const std::string& place, int depth) const;
  ExprPtr alternatives(const Schema& schema, const char* keyword, const std::string& place,
                       int depth);
  ExprPtr values(const Schema& schema, const std::string& place) const;
  ExprPtr by_type(const Schema& schema, const std::string& place, int depth);
  ExprPtr of_type(const std::string& type, const Schema& schema, const std::string& place,
                  int depth);
  ExprPtr object(const Schema& schema, const std::string& place, int depth);
  ExprPtr array(const Schema& schema, const std::string& place, int depth);
  ExprPtr string(const Schema& schema, const std::string& place);
  ExprPtr number(const Schema& schema, const std::string& place, bool integer);

  struct Property {
    ExprPtr pair;
    bool required;
  };
  std::vector<Property> properties(const Schema& schema, const std::string& place, int depth);
  ExprPtr additional(const Schema& schema, const std::string& place, int depth);
  ExprPtr comma(ExprPtr pair) { return sequence({literal(","), rules_.space(), std::move(pair)}); }
  ExprPtr after_first(const std::vector<Property>& list, size_t from, const ExprPtr& more);

  const Schema& root_;
  JsonRules rules_;
  std::map<std::string, int32_t> references_;  // by pointer
};

void refuse_keywords(const Schema& schema, const std::string& place) {
  for (const std::string_view name : kRefused) {
    const auto at = schema.find(name);
    if (at == schema.end() || (name == "uniqueItems" && *at == false)) continue;
    refuse(place, cat("the keyword ", name, " is not supported"));
  }
}

ExprPtr Converter::convert(const Schema& schema, const std::string& place, int depth) {
  if (depth > kMaxSchemaDepth) refuse(place, cat("nested more than ", kMaxSchemaDepth, " deep"));
  if (schema == true || (schema.is_object() && schema.empty())) return rules_.value();
  want(schema != false, place, "no value fits the schema false");
  want(schema.is_object(), place, "a schema must be an object, true or false");
  refuse_keywords(schema, place);
  if (schema.contains("$ref") && !schema.contains("allOf")) {
    const bool alone =
        std::ranges::none_of(kAssertions,
                             [&](std::string_view name) { return schema.contains(name); }) &&
        !schema.contains("type") && !schema.contains("enum") && !schema.contains("const");
    if (alone) return reference(schema, place, depth);
  }
  if (schema.contains("$ref") || schema.contains("allOf")) {
    return convert(flatten(schema, place, depth), place, depth + 1);
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return alternatives(schema, keyword, place, depth);
  }
  if (schema.contains("const") || schema.contains("enum")) return values(schema, place);
  return by_type(schema, place, depth);
}

const Schema& Converter::resolve(const std::string& pointer, const std::string& place) const {
  want(pointer.starts_with('#'), place, cat("$ref ", pointer, " does not begin with #"));
  try {
    const Schema::json_pointer path(pointer.substr(1));
    if (root_.contains(path)) return root_.at(path);
  } catch (const Schema::exception&) {
    want(false, place, cat("$ref ", pointer, " is no JSON pointer"));
  }
  want(false, place, cat("$ref ", pointer, " points to nothing"));
  return root_;
}

ExprPtr Converter::reference(const Schema& schema, const std::string& place, int depth) {
  want(schema["$ref"].is_string(), place, "$ref must be a string");
  const std::string pointer = schema["$ref"].get<std::string>();
  const Schema& target = resolve(pointer, place);
  const auto [at, fresh] = references_.try_emplace(pointer, 0);
  if (fresh) {
    const int32_t index = at->second = rules_.reserve(pointer);
    ExprPtr body = convert(target, pointer, depth + 1);
    rules_.define(index, std::move(body));
    return rule(index);
  }
  return rule(at->second);
}

// The schema without $ref and allOf.
Schema Converter::flatten(const Schema& schema, const std::string& place, int depth) const {
  if (depth > kMaxSchemaDepth) refuse(place, "the references of allOf lead to each other");
  if (!schema.is_object() || (!schema.contains("$ref") && !schema.contains("allOf"))) return schema;
  Schema out = schema;
  out.erase("$ref");
  out.erase("allOf");
  if (schema.contains("$ref")) {
    want(schema["$ref"].is_string(), place, "$ref must be a string");
    const std::string pointer = schema["$ref"].get<std::string>();
    out = merge_schemas(flatten(resolve(pointer, place), pointer, depth + 1), out, place);
  }
  if (!schema.contains("allOf")) return out;
  want(schema["allOf"].is_array() && !schema["allOf"].empty(), place,
       "allOf must be an array of at least one schema");
  for (size_t i = 0; i < schema["allOf"].size(); ++i) {
    const std::string at = cat(place, "/allOf/", i);
    const Schema part = flatten(schema["allOf"][i], at, depth + 1);
    want(part != false, at, "no value fits the schema false");
    if (part.is_object()) refuse_keywords(part, at);
    out = merge_schemas(out, part, at);
  }
  return out;
}

// What stands beside anyOf holds for each of its schemas.
ExprPtr Converter::alternatives(const Schema& schema, const char* keyword, const std::string& place,
                                int depth) {
  const Schema& list = schema[keyword];
  want(list.is_array() && !list.empty(), place,
       cat(keyword, " must be an array of at least one schema"));
  Schema beside = schema;
  beside.erase(keyword);
  for (const char* note : {"title", "description", "default", "examples", "$defs", "definitions",
                           "$schema", "$id", "$comment", "discriminator"}) {
    beside.erase(note);
  }
  std::vector<ExprPtr> ways;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string at = cat(place, "/", keyword, "/", i);
    if (list[i] == false) continue;
    if (beside.empty()) {
      ways.push_back(convert(list[i], at, depth + 1));
    } else {
      const Schema part = flatten(list[i], at, depth + 1);
      ways.push_back(convert(merge_schemas(beside, part, at), at, depth + 1));
    }
  }
  want(!ways.empty(), place, cat("no schema of ", keyword, " allows a value"));
  return choice(std::move(ways));
}

bool has_type(const Schema& value, const Schema& types) {
  const std::string_view type = type_of(value);
  for (const Schema& wanted : types.is_array() ? types : Schema::array({types})) {
    if (wanted == type || (wanted == "number" && type == "integer")) return true;
  }
  return false;
}

ExprPtr Converter::values(const Schema& schema, const std::string& place) const {
  for (const std::string_view name : kAssertions) {
    if (schema.contains(name)) refuse(place, cat(name, " beside enum or const is not supported"));
  }
  const bool constant = schema.contains("const");
  if (constant && schema.contains("enum")) {
    want(std::ranges::find(schema["enum"], schema["const"]) != schema["enum"].end(), place,
         "const is no value of enum");
  }
  const Schema list = constant ? Schema::array({schema["const"]}) : schema["enum"];
  want(list.is_array() && !list.empty(), place, "enum must be an array of at least one value");
  std::vector<ExprPtr> ways;
  for (const Schema& value : list) {
    if (schema.contains("type") && !has_type(value, schema["type"])) continue;
    ways.push_back(literal(value.dump()));
  }
  want(!ways.empty(), place, "no value of enum or const has the type");
  return choice(std::move(ways));
}

// The type that the keywords are about, for schemas that name none.
std::string implied_type(const Schema& schema) {
  constexpr std::array<std::pair<std::string_view, const char*>, 16> kTypes{
      {{"properties", "object"},
       {"required", "object"},
       {"additionalProperties", "object"},
       {"items", "array"},
       {"prefixItems", "array"},
       {"minItems", "array"},
       {"maxItems", "array"},
       {"pattern", "string"},
       {"minLength", "string"},
       {"maxLength", "string"},
       {"format", "string"},
       {"minimum", "number"},
       {"maximum", "number"},
       {"exclusiveMinimum", "number"},
       {"exclusiveMaximum", "number"},
       {"multipleOf", "number"}}};
  for (const auto& [keyword, type] : kTypes) {
    if (schema.contains(keyword)) return type;
  }
  return {};
}

ExprPtr Converter::by_type(const Schema& schema, const std::string& place, int depth) {
  if (!schema.contains("type")) {
    const std::string type = implied_type(schema);
    return type.empty() ? rules_.value() : of_type(type, schema, place, depth);
  }
  const Schema& type = schema["type"];
  if (type.is_string()) return of_type(type.get<std::string>(), schema, place, depth);
  want(type.is_array() && !type.empty(), place, "type must be a name or an array of names");
  std::vector<ExprPtr> ways;
  for (const Schema& name : type) {
    want(name.is_string(), place, "type must be a name or an array of names");
    ways.push_back(of_type(name.get<std::string>(), schema, place, depth));
  }
  return choice(std::move(ways));
}

ExprPtr Converter::of_type(const std::string& type, const Schema& schema, const std::string& place,
                           int depth) {
  if (type == "object") return object(schema, place, depth);
  if (type == "array") return array(schema, place, depth);
  if (type == "string") return string(schema, place);
  if (type == "number") return number(schema, place, false);
  if (type == "integer") return number(schema, place, true);
  if (type == "boolean") return JsonRules::boolean();
  if (type == "null") return JsonRules::null();
  want(false, place, cat("there is no type ", type));
  return nullptr;
}

// The named properties in order; those that are only required come last.
std::vector<Converter::Property> Converter::properties(const Schema& schema,
                                                       const std::string& place, int depth) {
  const Schema named = schema.value("properties", Schema::object());
  const Schema required = schema.value("required", Schema::array());
  want(named.is_object(), place, "properties must be an object");
  want(required.is_array(), place, "required must be an array of names");
  const Schema others = schema.value("additionalProperties", Schema(true));
  std::vector<Property> out;
  const auto add = [&](const std::string& name, const Schema& part, bool must) {
    ExprPtr value = convert(part, cat(place, "/properties/", name), depth + 1);
    ExprPtr pair = rules_.pair(literal(Schema(name).dump()), std::move(value));
    if (named.size() > kMaxInlined) pair = rules_.add(cat(place, "/properties/", name), pair);
    out.push_back({std::move(pair), must});
  };
  std::set<std::string> names;
  for (const Schema& entry : required) {
    want(entry.is_string(), place, "required must be an array of names");
    names.insert(entry.get<std::string>());
  }
  for (const auto& [name, part] : named.items()) {
    const bool must = names.erase(name) > 0;
    if (part != false || must) add(name, part, must);
  }
  for (const std::string& name : names) {
    want(others != false, place,
         cat("required names ", name,
             ", which properties does not and "
             "additionalProperties forbids"));
    add(name, others, true);
  }
  return out;
}

// A pair with a name that properties does not have; null where there are none.
ExprPtr Converter::additional(const Schema& schema, const std::string& place, int depth) {
  const bool named = schema.contains("properties") && !schema["properties"].empty();
  if (!schema.contains("additionalProperties") && (named || schema.contains("required"))) {
    return nullptr;
  }
  const Schema others = schema.value("additionalProperties", Schema(true));
  if (others == false) return nullptr;
  std::vector<std::string> names;
  const Schema properties = schema.value("properties", Schema::object());
  for (const auto& [name, part] : properties.items()) names.push_back(name);
  for (const Schema& name : schema.value("required", Schema::array())) {
    names.push_back(name.get<std::string>());
  }
  ExprPtr value = convert(others, place + "/additionalProperties", depth + 1);
  ExprPtr key = rules_.add(place + " (other names)", rules_.other_key(names));
  return rules_.add(place + "/additionalProperties", rules_.pair(std::move(key), std::move(value)));
}

// What may follow a first pair.
ExprPtr Converter::after_first(const std::vector<Property>& list, size_t from,
                               const ExprPtr& more) {
  std::vector<ExprPtr> parts;
  for (size_t i = from; i < list.size(); ++i) {
    const ExprPtr next = comma(list[i].pair);
    parts.push_back(list[i].required ? next : optional(next));
  }
  if (more) parts.push_back(repeat(comma(more), 0, kUnlimited));
  return sequence(std::move(parts));
}

ExprPtr Converter::object(const Schema& schema, const std::string& place, int depth) {
  const std::vector<Property> list = properties(schema, place, depth);
  const ExprPtr more = additional(schema, place, depth);
  if (list.empty() && more == nullptr)
    return sequence({literal("{"), rules_.space(), literal("}")});
  // By the first pair that comes: all before it are optional.
  std::vector<ExprPtr> ways;
  size_t i = 0;
  for (; i < list.size(); ++i) {
    ways.push_back(sequence({list[i].pair, after_first(list, i + 1, more)}));
    if (list[i].required) break;
  }
  const bool may_be_empty = i == list.size();
  if (may_be_empty && more) ways.push_back(sequence({more, after_first(list, i, more)}));
  ExprPtr body = sequence({choice(std::move(ways)), rules_.space()});
  if (may_be_empty) body = optional(std::move(body));
  return rules_.add(place, sequence({literal("{"), rules_.space(), std::move(body), literal("}")}));
}

int64_t count_of(const Schema& schema, const char* keyword, int64_t fallback,
                 const std::string& place) {
  if (!schema.contains(keyword)) return fallback;
  const Schema& value = schema[keyword];
  const bool whole = value.is_number() && value.get<double>() >= 0 &&
                     std::floor(value.get<double>()) == value.get<double>();
  want(whole, place, cat(keyword, " must be an integer of at least 0"));
  if (value.get<double>() > kMaxCount) refuse(place, cat(keyword, " is above ", kMaxCount));
  return value.get<int64_t>();
}

ExprPtr Converter::array(const Schema& schema, const std::string& place, int depth) {
  int64_t min = count_of(schema, "minItems", 0, place);
  int64_t max = count_of(schema, "maxItems", kUnlimited, place);
  want(max == kUnlimited || min <= max, place, "minItems is above maxItems");
  const Schema prefix = schema.value("prefixItems", Schema::array());
  want(prefix.is_array(), place, "prefixItems must be an array of schemas");
  std::vector<ExprPtr> first;
  for (size_t i = 0; i < prefix.size() && (max == kUnlimited || std::ssize(first) < max); ++i) {
    first.push_back(convert(prefix[i], cat(place, "/prefixItems/", i), depth + 1));
  }
  const auto fixed = static_cast<int64_t>(first.size());
  min = std::max<int64_t>(min - fixed, 0);
  if (max != kUnlimited) max -= fixed;
  const Schema items = schema.value("items", Schema(true));
  // Behind a prefix, nothing unless it is asked for.
  if (items == false || (fixed > 0 && !schema.contains("items") && min == 0)) max = 0;
  want(items != false || min == 0, place, "minItems asks for more than items allows");
  const ExprPtr more = max == 0 ? nullptr : convert(items, place + "/items", depth + 1);
  return rules_.add(place, rules_.list(first, more, min, max));
}

ExprPtr Converter::string(const Schema& schema, const std::string& place) {
  const int64_t min = count_of(schema, "minLength", 0, place);
  const int64_t max = count_of(schema, "maxLength", kUnlimited, place);
  want(max == kUnlimited || min <= max, place, "minLength is above maxLength");
  const bool bounded = min > 0 || max != kUnlimited;
  for (const char* keyword : {"pattern", "format"}) {
    if (!schema.contains(keyword)) continue;
    want(schema[keyword].is_string(), place, cat(keyword, " must be a string"));
    if (bounded) refuse(place, cat(keyword, " beside minLength or maxLength is not supported"));
  }
  if (schema.contains("pattern")) {
    if (schema.contains("format")) refuse(place, "pattern beside format is not supported");
    const std::string where = cat("json_schema: ", place, "/pattern");
    return rules_.add(place,
                      JsonRules::quoted(parse_regex(where, schema["pattern"].get<std::string>(),
                                                    JsonRules::string_chars)));
  }
  if (schema.contains("format")) {
    const std::string format = schema["format"].get<std::string>();
    const char* pattern = format_pattern(format);
    if (pattern == nullptr) {
      refuse(place, cat("the format ", format, " is not known; known are ", known_formats()));
    }
    return rules_.add(place, JsonRules::quoted(parse_regex(place, pattern)));
  }
  if (!bounded) return rules_.string();
  return rules_.add(place, JsonRules::quoted(repeat(JsonRules::string_char(), min, max)));
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
    want(schema[keyword].is_number(), place, cat(keyword, " must be a number"));
    const double value = schema[keyword].get<double>();
    const bool is_open = keyword == open;
    if (sign * value > sign * out.value || (value == out.value && is_open)) out = {value, is_open};
  }
  if (sign * out.value > static_cast<double>(kMaxJsonInteger)) {
    refuse(place, cat(closed, " is beyond 16 digits"));
  }
  return out;
}

ExprPtr Converter::number(const Schema& schema, const std::string& place, bool integer) {
  Bound low = bound_of(schema, "minimum", "exclusiveMinimum", 1, place);
  Bound high = bound_of(schema, "maximum", "exclusiveMaximum", -1, place);
  if (integer) {
    const double least = std::ceil(low.value), most = std::floor(high.value);
    low = {low.open && least == low.value ? least + 1 : least, false};
    high = {high.open && most == high.value ? most - 1 : most, false};
  }
  const bool some = low.value < high.value || (low.value == high.value && !low.open && !high.open);
  want(some, place, "no number lies between the bounds");
  const auto bound = [&](const Bound& side, const char* keyword, bool upper) {
    // The double next to 16 nines has 17 digits.
    const bool given = std::fabs(side.value) < static_cast<double>(kMaxJsonInteger);
    if (given) return json_bound(side.value, side.open, place, keyword);
    return JsonBound{.negative = !upper, .open = side.open};
  };
  const JsonBounds bounds{.low = bound(low, "minimum", false),
                          .high = bound(high, "maximum", true)};
  if (schema.contains("multipleOf")) {
    want(schema["multipleOf"].is_number(), place, "multipleOf must be a number");
    const JsonStep step = json_step(schema["multipleOf"].get<double>(), integer, place);
    return rules_.add(place, json_multiples(rules_, step, bounds, place));
  }
  if (bounds.any()) return integer ? rules_.integer() : rules_.number();
  return rules_.add(place, integer ? json_integer(bounds) : json_number(bounds));
}

// Watches the depth while the text is read.
Schema parse(std::string_view text) {
  try {
    return Schema::parse(text, [](int depth, Schema::parse_event_t, Schema&) {
      if (depth > 2 * kMaxSchemaDepth) refuse("#", "nested too deep");
      return true;
    });
  } catch (const Schema::parse_error& error) {
    fail(Code::invalid_argument, "json_schema", "not JSON in UTF-8; the fault is near byte ",
         error.byte);
  } catch (const Schema::exception&) {
    fail(Code::invalid_argument, "json_schema", "a number is out of range");
  }
}

}  // namespace

Grammar parse_json_schema(std::string_view schema) {
  const Schema root = parse(schema);
  return Converter(root).run();
}

Grammar json_object_grammar() {
  JsonRules rules;
  ExprPtr root = rules.object();
  return rules.finish(std::move(root));
}

}  // namespace rbee::grammar
