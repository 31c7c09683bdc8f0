#include "rbee/grammar/schema_merge.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "rbee/grammar/budget.h"
#include "rbee/grammar/schema_validator.h"

namespace rbee::grammar {
namespace {

constexpr std::array<std::string_view, 5> kLargest{"minimum", "exclusiveMinimum", "minLength",
                                                   "minItems", "minProperties"};
constexpr std::array<std::string_view, 5> kLeast{"maximum", "exclusiveMaximum", "maxLength",
                                                 "maxItems", "maxProperties"};
constexpr size_t kMaxWays = 256;
constexpr int64_t kNodeBytes = 64;
constexpr int64_t kBytesOfWork = 16;
constexpr int64_t kCopies = 4;  // of what is merged

template <size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Schema as_list(const Schema& value) {
  return value.is_array() ? value : Schema::array({value});
}

bool has(const Schema& list, const Schema& value) {
  return std::ranges::find(list, value) != list.end();
}

Schema common(const Schema& a, const Schema& b) {
  std::set<std::string> known;
  for (const Schema& value : as_list(b)) known.insert(value_text(value));
  Schema out = Schema::array();
  for (const Schema& value : as_list(a)) {
    if (known.contains(value_text(value))) out.push_back(value);
  }
  return out;
}

// "integer" is a "number".
Schema common_types(const Schema& a, const Schema& b) {
  Schema out = common(a, b);
  for (const auto& [one, other] :
       {std::pair(as_list(a), as_list(b)), std::pair(as_list(b), as_list(a))}) {
    if (has(one, "integer") && has(other, "number") && !has(out, "integer")) {
      out.push_back("integer");
    }
  }
  return out;
}

Schema part_of(const Schema& schema, const char* keyword, Schema fallback) {
  const auto at = schema.find(keyword);
  return at == schema.end() ? fallback : *at;
}

// The condition of `schema`'s additionalProperties on a name that only another schema has.
Schema outside(const Schema& schema, const std::string& name, const std::string& place,
               SchemaValidator& validator) {
  const Schema patterns = part_of(schema, "patternProperties", Schema::object());
  for (const auto& [pattern, part] : patterns.items()) {
    if (validator.matches_anywhere(pattern, name, place)) return true;
  }
  return part_of(schema, "additionalProperties", true);
}

Schema merged_properties(const Schema& a, const Schema& b, const std::string& place,
                         SchemaValidator& validator) {
  const Schema left = part_of(a, "properties", Schema::object());
  const Schema right = part_of(b, "properties", Schema::object());
  Schema out = Schema::object();
  for (const auto& [name, schema] : left.items()) {
    out[name] = both_schemas(
        schema, right.contains(name) ? right[name] : outside(b, name, place, validator));
  }
  for (const auto& [name, schema] : right.items()) {
    if (left.contains(name)) continue;
    out[name] = both_schemas(outside(a, name, place, validator), schema);
  }
  return out;
}

// Names that patterns of one schema hold for are no others of the merged one, but are of the other.
void refuse_patterns_beside(const Schema& a, const Schema& b, const std::string& place) {
  const Schema patterns = part_of(a, "patternProperties", Schema::object());
  const Schema known = part_of(b, "patternProperties", Schema::object());
  if (part_of(b, "additionalProperties", true) == true) return;
  for (const auto& [pattern, schema] : patterns.items()) {
    if (known.contains(pattern)) continue;
    fail(Code::unsupported, "json_schema", place,
         ": patternProperties and additionalProperties of two schemas cannot both be held");
  }
}

void merge_objects(Schema& out, const Schema& more, const std::string& place,
                   SchemaValidator& validator) {
  refuse_patterns_beside(out, more, place);
  refuse_patterns_beside(more, out, place);
  if (out.contains("properties") || more.contains("properties")) {
    out["properties"] = merged_properties(out, more, place, validator);
  }
  if (more.contains("patternProperties")) {
    Schema& own = out["patternProperties"];
    for (const auto& [pattern, schema] : more["patternProperties"].items()) {
      own[pattern] = own.contains(pattern) ? both_schemas(own[pattern], schema) : schema;
    }
  }
  for (const char* keyword : {"additionalProperties", "propertyNames"}) {
    if (!more.contains(keyword)) continue;
    out[keyword] = both_schemas(part_of(out, keyword, true), more[keyword]);
  }
}

// prefixItems and items, place by place.
void merge_items(Schema& out, const Schema& more) {
  const Schema left = part_of(out, "prefixItems", Schema::array());
  const Schema right = part_of(more, "prefixItems", Schema::array());
  const Schema left_rest = part_of(out, "items", true), right_rest = part_of(more, "items", true);
  const bool given = out.contains("items") || more.contains("items");
  Schema prefix = Schema::array();
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    prefix.push_back(both_schemas(i < left.size() ? left[i] : left_rest,
                                  i < right.size() ? right[i] : right_rest));
  }
  if (!prefix.empty()) out["prefixItems"] = prefix;
  if (given) out["items"] = both_schemas(left_rest, right_rest);
}

Schema merged_ways(const Schema& a, const Schema& b, const std::string& place) {
  if (a.size() * b.size() > kMaxWays) {
    fail(Code::unsupported, "json_schema", place, ": more than ", kMaxWays,
         " ways to fulfil anyOf, oneOf, if and what depends on properties");
  }
  Schema out = Schema::array();
  for (const Schema& one : a) {
    for (const Schema& other : b) out.push_back(both_schemas(one, other));
  }
  return out;
}

void add_patterns(Schema& out, const Schema& more) {
  Schema list = part_of(out, kMorePatterns, Schema::array());
  Schema added = part_of(more, kMorePatterns, Schema::array());
  if (more.contains("pattern")) added.push_back(more["pattern"]);
  for (const Schema& pattern : added) {
    if (!out.contains("pattern")) {
      out["pattern"] = pattern;
    } else if (out["pattern"] != pattern && !has(list, pattern)) {
      list.push_back(pattern);
    }
  }
  if (!list.empty()) out[kMorePatterns] = list;
}

bool is_integer(const Schema& value) {
  return value.is_number_integer() && value.get<int64_t>() > 0 &&
         value.get<int64_t>() < (int64_t{1} << 31);
}

Schema joined(Schema a, const Schema& b) {
  std::set<std::string> known;
  for (const Schema& part : a) known.insert(part.dump());
  for (const Schema& part : b) {
    if (known.insert(part.dump()).second) a.push_back(part);
  }
  return a;
}

void merge_keyword(Schema& out, const std::string& name, const Schema& value,
                   const std::string& place) {
  Schema& own = out[name];
  if (own == value) return;
  if (among(kLargest, name)) {
    own = compare_numbers(own, value) < 0 ? value : own;
  } else if (among(kLeast, name)) {
    own = compare_numbers(own, value) > 0 ? value : own;
  } else if (name == "type") {
    own = common_types(own, value);
    if (own.empty()) throw NothingFits(place, "no type fits all parts");
  } else if (name == "enum") {
    own = common(own, value);
    if (own.empty()) throw NothingFits(place, "no value of enum fits all parts");
  } else if (name == "const") {
    if (!same_value(own, value)) throw NothingFits(place, "two different values of const");
  } else if (name == "required") {
    own = joined(own, value);
  } else if (name == "dependentRequired") {
    for (const auto& [property, needs] : value.items()) {
      own[property] = joined(part_of(own, property.c_str(), Schema::array()), needs);
    }
  } else if (name == "anyOf") {
    own = merged_ways(own, value, place);
  } else if (name == "not") {
    own = Schema{{"anyOf", joined(parts_of_not(own), parts_of_not(value))}};
  } else if (name == "uniqueItems") {
    own = true;
  } else if (name == "multipleOf" && is_integer(own) && is_integer(value)) {
    own = std::lcm(own.get<int64_t>(), value.get<int64_t>());
  } else {
    fail(Code::unsupported, "json_schema", place, ": two different values of ", name,
         " cannot both be held");
  }
}

constexpr std::array<std::string_view, 8> kTogether{
    "properties",  "patternProperties", "additionalProperties", "propertyNames", "items",
    "prefixItems", "pattern",           kMorePatterns};

}  // namespace

int64_t tree_bytes(const Schema& tree) {
  int64_t out = kNodeBytes;
  if (tree.is_string()) out += std::ssize(tree.get_ref<const std::string&>());
  if (!tree.is_structured()) return out;
  for (const auto& [name, part] : tree.items()) {
    out += tree_bytes(part) + (tree.is_object() ? std::ssize(name) : 0);
  }
  return out;
}

int64_t work_of_copy(int64_t tree_bytes) {
  return tree_bytes / kBytesOfWork;
}

int64_t work_of_place(const std::string& place) {
  return 1 + std::ssize(place) / kBytesOfWork;
}

Schema parts_of_not(const Schema& schema) {
  const bool several = schema.is_object() && schema.size() == 1 && schema.contains("anyOf");
  if (!several || !schema["anyOf"].is_array()) return Schema::array({schema});
  Schema out = Schema::array();
  for (const Schema& part : schema["anyOf"]) out = joined(out, parts_of_not(part));
  return out;
}

Schema both_schemas(const Schema& a, const Schema& b) {
  if (a == true || a == b) return b;
  if (b == true) return a;
  if (a == false || b == false) return false;
  return Schema{{"allOf", Schema::array({a, b})}};
}

Schema merge_schemas(const Schema& base, const Schema& more, const std::string& place,
                     SchemaValidator& validator) {
  if (base == false || more == false) throw NothingFits(place, "no value fits the schema false");
  if (more == true) return base;
  if (base == true) return more;
  bill({.work = kCopies * work_of_copy(tree_bytes(base) + tree_bytes(more))});
  Schema out = base;
  merge_objects(out, more, place, validator);
  merge_items(out, more);
  add_patterns(out, more);
  for (const auto& [name, value] : more.items()) {
    if (among(kTogether, name)) continue;
    if (out.contains(name)) {
      merge_keyword(out, name, value, place);
    } else {
      out[name] = value;
    }
  }
  return out;
}

}  // namespace rbee::grammar
