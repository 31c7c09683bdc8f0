#include "rbee/grammar/schema_logic.h"

#include <algorithm>
#include <array>
#include <set>

#include "rbee/grammar/budget.h"
#include "rbee/grammar/schema_apart.h"
#include "rbee/grammar/schema_keywords.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxSteps = 20'000;
constexpr int64_t kMaxIntegers = 1000;   // of a range that is listed
constexpr int64_t kBytesOfStep = 16384;  // of a schema
constexpr int64_t kTextCopies = 2;       // what making a tree's text costs
constexpr int64_t kFarInteger = 1'000'000'000'000'000;

constexpr std::array<std::string_view, 5> kRefused{
    "maxContains", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"};
// Keywords that others cover; dependentRequired comes back for lists of names.
constexpr std::array<std::string_view, 11> kRewritten{
    "$ref",         "allOf", "oneOf", "if", "then", "else", "dependentRequired", "dependentSchemas",
    "dependencies", "anyOf", "not"};
// Keywords whose failure no other keyword can express.
constexpr std::array<std::string_view, 9> kOneWay{
    "format",      "multipleOf",           "uniqueItems", "patternProperties", "propertyNames",
    "prefixItems", "additionalProperties", "minContains", "maxContains"};
[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  fail(Code::unsupported, "json_schema", place, ": ", why);
}

Schema any_of(std::vector<Schema> ways) {
  return {{"anyOf", std::move(ways)}};
}

Schema not_of(const Schema& schema) {
  if (schema.is_boolean()) return schema == false;
  return {{"not", schema}};
}

// Without the property, or with what it requires.
Schema unless_absent(const std::string& name, const Schema& needs) {
  return any_of({Schema{{"properties", {{name, false}}}},
                 both_schemas({{"required", Schema::array({name})}}, needs)});
}

const Schema& whole_numbers() {
  static const Schema out{{"multipleOf", 1}};
  return out;
}

// Whether the schema names types, and only these.
bool has_only(const Schema& schema, std::initializer_list<std::string_view> types) {
  const Schema named = schema.value("type", Schema::array());
  const Schema list = named.is_array() ? named : Schema::array({named});
  return !list.empty() && std::ranges::all_of(list, [&](const Schema& one) {
    return std::ranges::any_of(types, [&](std::string_view type) { return one == type; });
  });
}

// What the types' own grammars leave out of `schema` under `not`: values, and patterns and whole
// numbers where there are strings or numbers alone. Values of other types fulfil the latter two, so
// that `not` fails them.
bool is_excluding(const Schema& part, const Schema& schema) {
  if (!part.is_object() || part.size() != 1) return false;
  const std::string& name = part.begin().key();
  if (name == "anyOf") {
    return std::ranges::all_of(part["anyOf"],
                               [&](const Schema& one) { return is_excluding(one, schema); });
  }
  if (name == "pattern") return has_only(schema, {"string"});
  if (part == whole_numbers()) return has_only(schema, {"number", "integer"});
  return name == "enum" || name == "const";
}

void collect(const Schema& schema, Excluded& out) {
  if (schema.contains("const")) out.values.push_back(schema["const"]);
  for (const Schema& value : schema.value("enum", Schema::array())) out.values.push_back(value);
  if (schema.contains("pattern")) out.patterns.push_back(schema["pattern"].get<std::string>());
  out.integers |= schema == whole_numbers();
  for (const Schema& part : schema.value("anyOf", Schema::array())) collect(part, out);
}

// The values of a type, if it has few; nothing: many, or the schema names none.
std::optional<std::vector<Schema>> values_of_type(const Schema& schema) {
  const Schema type = schema.value("type", Schema());
  if (type == "boolean") return std::vector<Schema>{true, false};
  if (type == "null") return std::vector<Schema>{nullptr};
  if (type != "integer" || !schema.contains("minimum") || !schema.contains("maximum")) {
    return std::nullopt;
  }
  const __int128 low = last_integer(schema["minimum"], false);
  const __int128 high = last_integer(schema["maximum"], true);
  if (high - low >= kMaxIntegers || low < -kFarInteger || low > kFarInteger) return std::nullopt;
  std::vector<Schema> out;
  for (__int128 n = low; n <= high; ++n) out.emplace_back(static_cast<int64_t>(n));
  return out;
}

// One name is there without the other.
void add_dependency_ways(const Schema& plain, std::vector<Schema>& ways) {
  const Schema dependencies = plain.value("dependentRequired", Schema::object());
  for (const auto& [name, needs] : dependencies.items()) {
    for (const Schema& need : needs) {
      ways.push_back({{"type", "object"},
                      {"required", Schema::array({name})},
                      {"properties", {{need.get<std::string>(), false}}}});
    }
  }
}

// For a schema with conditions on its properties. A required one also fails if it is absent: one
// way for both.
void add_property_ways(const Schema& plain, std::vector<Schema>& ways) {
  const Schema required = plain.value("required", Schema::array());
  const Schema properties = plain.value("properties", Schema::object());
  for (const Schema& name : required) {
    const Schema part = properties.value(name.get<std::string>(), Schema(true));
    ways.push_back({{"type", "object"}, {"properties", {{name.get<std::string>(), not_of(part)}}}});
  }
  for (const auto& [name, part] : properties.items()) {
    if (part == true || std::ranges::find(required, Schema(name)) != required.end()) continue;
    ways.push_back({{"type", "object"},
                    {"required", Schema::array({name})},
                    {"properties", {{name, not_of(part)}}}});
  }
}

}  // namespace

void name_tuples(Schema& schema) {
  if (schema.contains("items") && schema["items"].is_array()) {
    schema["prefixItems"] = schema["items"];
    schema.erase("items");
    if (schema.contains("additionalItems")) schema["items"] = schema["additionalItems"];
  }
  schema.erase("additionalItems");
}

void refuse_keywords(const Schema& schema, const std::string& place) {
  for (const std::string_view name : kRefused) {
    if (schema.contains(name)) refuse(place, cat("the keyword ", name, " is not supported"));
  }
  if (schema.contains("minContains") && schema["minContains"] != 0 && schema["minContains"] != 1) {
    refuse(place, "minContains above 1 is not supported");
  }
  if (place != "#" && schema.contains("$id") && schema["$id"].is_string()) {
    refuse(place, "$id below the root is not supported");
  }
}

Excluded excluded_by(const Schema& schema) {
  Excluded out;
  if (!schema.contains("not")) return out;
  RB_ASSERT(is_excluding(schema["not"], schema));
  collect(schema["not"], out);
  return out;
}

void SchemaLogic::spend(const std::string& place, int64_t steps) {
  steps_ += steps;
  bill({.work = work_of_place(place)});
  if (steps_ > kMaxSteps) refuse(place, "there are too many ways to fulfil it");
}

// The schema with anyOf and `not` as one choice.
Schema SchemaLogic::flatten(const Schema& schema, const std::string& place, int depth) {
  HeldBytes held;
  const auto hold = [&](const Schema& tree) {
    const int64_t bytes = tree_bytes(tree);
    spend(place, bytes / kBytesOfStep);
    bill({.work = work_of_copy(bytes)});
    held.add(static_cast<size_t>(bytes));
  };
  spend(place);
  hold(schema);
  if (depth > kMaxSchemaDepth)
    refuse(place, "references of allOf lead to each other, or too much is put together");
  if (schema == false) throw NothingFits(place, "no value fits the schema false");
  if (schema == true) return Schema::object();
  refuse_keywords(schema, place);
  Schema out = without_idle(schema);
  for (const std::string_view name : kRewritten) {
    if (name != "anyOf" && name != "not") out.erase(name);
  }
  name_tuples(out);
  const auto merge = [&](const Schema& plain, const std::string& at) {
    hold(plain);
    out = merge_schemas(out, plain, at, validator_);
  };
  const auto add = [&](const Schema& part, const std::string& at) {
    merge(flatten(part, at, depth + 1), at);
  };
  if (schema.contains("$ref")) {
    const std::string pointer = schema["$ref"].get<std::string>();
    add(resolve(pointer, place), pointer);
  }
  if (schema.contains("allOf")) {
    const Schema& list = schema["allOf"];
    for (size_t i = 0; i < list.size(); ++i) add(list[i], cat(place, "/allOf/", i));
  }
  if (schema.contains("oneOf")) add(one_of(schema["oneOf"], place, depth), place);
  if (schema.contains("if") && (schema.contains("then") || schema.contains("else"))) {
    const Schema& condition = schema["if"];
    add(any_of({both_schemas(condition, schema.value("then", Schema(true))),
                both_schemas(not_of(condition), schema.value("else", Schema(true)))}),
        cat(place, "/if"));
  }
  for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    if (!schema.contains(keyword)) continue;
    Schema lists = Schema::object();
    for (const auto& [name, needs] : schema[keyword].items()) {
      if (needs.is_array()) {
        lists[name] = needs;
      } else if (needs != true) {
        add(unless_absent(name, needs), cat(place, "/", keyword, "/", name));
      }
    }
    if (!lists.empty()) merge({{"dependentRequired", std::move(lists)}}, place);
  }
  return out;
}

// Each schema without the others that may share a value with it.
Schema SchemaLogic::one_of(const Schema& list, const std::string& place, int depth) {
  std::vector<std::optional<Schema>> plain(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    try {
      plain[i] = flatten(list[i], cat(place, "/oneOf/", i), depth + 1);
    } catch (const NothingFits&) {
      continue;
    }
  }
  const auto others = overlaps(plain, [&](int64_t steps) { spend(place, steps); });
  std::vector<Schema> out;
  std::vector<int64_t> bytes;
  for (const Schema& part : list) bytes.push_back(tree_bytes(part));
  HeldBytes held;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!plain[i]) continue;
    std::vector<Schema> shared;
    for (const size_t k : others[i]) {
      bill({.work = work_of_copy(bytes[k])});
      held.add(static_cast<size_t>(bytes[k]));
      shared.push_back(list[k]);
    }
    out.push_back(shared.empty() ? list[i]
                                 : both_schemas(list[i], not_of(any_of(std::move(shared)))));
  }
  if (out.empty()) throw NothingFits(place, "no schema of oneOf allows a value");
  return any_of(std::move(out));
}

// Ways in which a value can fail the schema, keyword by keyword.
SchemaLogic::Negation SchemaLogic::negate(const Schema& schema, const std::string& place,
                                          int depth) {
  Schema plain;
  try {
    plain = flatten(schema, place, depth + 1);
  } catch (const NothingFits&) {
    return {.ways = {true}};
  }
  Negation out;
  const auto way = [&](const char* type, const char* keyword, const Schema& value) {
    out.ways.push_back({{"type", type}, {keyword, value}});
  };
  const auto beyond = [&](const char* type, const char* keyword, const char* other, int by) {
    if (!plain.contains(keyword)) return;
    if (by == 0) return way(type, other, plain[keyword]);
    const double bound = plain[keyword].get<double>() + by;
    if (bound >= 0) way(type, other, bound);
  };
  if (plain.contains("anyOf")) {
    Schema none = Schema::array();
    for (const Schema& part : plain["anyOf"]) none.push_back(not_of(part));
    out.ways.push_back({{"allOf", std::move(none)}});
  }
  if (plain.contains("not")) out.ways.push_back(plain["not"]);
  for (const char* keyword : {"enum", "const"}) {
    if (plain.contains(keyword)) out.ways.push_back(not_of({{keyword, plain[keyword]}}));
  }
  if (plain.contains("type")) {
    const Schema types = types_but(plain["type"]);
    if (!types.empty()) out.ways.push_back({{"type", types}});
    if (has_type(1, plain["type"]) && !has_type(0.5, plain["type"]))
      way("number", "not", whole_numbers());
  }
  const bool whole = plain.value("multipleOf", Schema()) == 1;
  if (whole) way("number", "not", whole_numbers());
  beyond("number", "minimum", "exclusiveMaximum", 0);
  beyond("number", "maximum", "exclusiveMinimum", 0);
  beyond("number", "exclusiveMinimum", "maximum", 0);
  beyond("number", "exclusiveMaximum", "minimum", 0);
  beyond("string", "minLength", "maxLength", -1);
  beyond("string", "maxLength", "minLength", 1);
  beyond("array", "minItems", "maxItems", -1);
  beyond("array", "maxItems", "minItems", 1);
  beyond("object", "minProperties", "maxProperties", -1);
  beyond("object", "maxProperties", "minProperties", 1);
  if (plain.contains("pattern")) way("string", "not", {{"pattern", plain["pattern"]}});
  for (const Schema& pattern : plain.value(kMorePatterns, Schema::array())) {
    way("string", "not", {{"pattern", pattern}});
  }
  add_property_ways(plain, out.ways);
  add_dependency_ways(plain, out.ways);
  const bool all_items = plain.contains("items") && !plain.contains("prefixItems");
  if (all_items && plain["items"] != true) way("array", "contains", not_of(plain["items"]));
  const bool some = plain.contains("contains") && plain.value("minContains", Schema(1)) == 1;
  if (some) way("array", "items", not_of(plain["contains"]));
  for (const std::string_view keyword : kOneWay) {
    const bool neutral =
        (keyword == "additionalProperties" && plain.contains(keyword) && plain[keyword] == true);
    const bool said = keyword == "multipleOf" && whole;
    if (plain.contains(keyword) && !neutral && !said) out.missing = keyword;
  }
  return out;
}

std::vector<Schema> SchemaLogic::ways(const Schema& schema, const std::string& place, int depth) {
  Schema rest = flatten(schema, place, depth);
  std::vector<Schema> choices;
  std::string missing;
  if (rest.contains("anyOf")) {
    choices = rest["anyOf"].get<std::vector<Schema>>();
    rest.erase("anyOf");
  } else if (rest.contains("not") && !is_excluding(rest["not"], rest)) {
    Schema parts = parts_of_not(rest["not"]);
    const auto first = std::find_if_not(
        parts.begin(), parts.end(), [&](const Schema& part) { return is_excluding(part, rest); });
    Negation negation = negate(*first, place, depth + 1);
    choices = std::move(negation.ways);
    missing = std::move(negation.missing);
    parts.erase(first);
    rest.erase("not");
    if (!parts.empty()) rest["not"] = {{"anyOf", parts}};
  } else {
    return {std::move(rest)};
  }
  std::vector<Schema> out;
  std::set<std::string> known;
  HeldBytes held;
  const int64_t rest_bytes = tree_bytes(rest);
  for (const Schema& choice : choices) {
    spend(place);
    bill({.work = work_of_copy(rest_bytes)});
    try {
      for (Schema& way : ways(both_schemas(rest, choice), place, depth + 1)) {
        const int64_t bytes = tree_bytes(way);
        bill({.work = kTextCopies * work_of_copy(bytes)});
        held.add(static_cast<size_t>(2 * bytes));  // and its text
        if (known.insert(way.dump()).second) out.push_back(std::move(way));
      }
    } catch (const NothingFits&) {
      continue;
    }
  }
  if (out.empty() && !missing.empty()) {
    refuse(place, cat("not, or a oneOf or if that needs it, of the keyword ", missing,
                      " is not supported"));
  }
  if (out.empty()) throw NothingFits(place, "no value fits all parts");
  return out;
}

std::optional<std::vector<Schema>> SchemaLogic::named_values(const Schema& schema,
                                                             const std::string& place) {
  const std::optional<Schema> list = few_values(schema);
  if (!list) return std::nullopt;
  Schema rest = schema;  // without the list: each of its values is in it
  rest.erase(schema.contains("const") ? "const" : "enum");
  std::vector<Schema> out;
  std::set<std::string> known;
  for (const Schema& value : *list) {
    if (known.insert(value_text(value)).second && holds(value, rest, place)) out.push_back(value);
  }
  return out;
}

std::optional<std::vector<Schema>> SchemaLogic::values(const Schema& schema,
                                                       const std::string& place, int depth) {
  std::vector<Schema> out, all;
  try {
    all = ways(schema, place, depth);
  } catch (const NothingFits&) {
    return out;
  }
  std::set<std::string> known;
  for (const Schema& way : all) {
    std::optional<std::vector<Schema>> list = named_values(way, place);
    if (!list) {
      list = values_of_type(way);
      if (!list) return std::nullopt;
      std::erase_if(*list, [&](const Schema& value) { return !holds(value, way, place); });
    }
    for (Schema& value : *list) {
      if (known.insert(value_text(value)).second) out.push_back(std::move(value));
    }
  }
  return out;
}

}  // namespace rbee::grammar
