#include "rbee/grammar/schema_validator.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rbee/grammar/formats.h"
#include "rbee/grammar/json_multiples.h"
#include "rbee/grammar/json_numbers.h"
#include "rbee/grammar/regex.h"
#include "rbee/grammar/schema_logic.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {
namespace {

// numerator / 10^places divides the value.
bool is_multiple(double value, const Schema& of, const std::string& place) {
  check(of.is_number(), "json_schema", place, ": multipleOf must be a number");
  const JsonStep step = json_step(of.get<double>(), false, place);
  const JsonBound number = json_bound(value, false, place, "a number");
  if (std::ssize(number.places) > step.places) return false;
  __int128 scaled = number.whole;
  for (int64_t i = 0; i < step.places; ++i) {
    const bool given = i < std::ssize(number.places);
    scaled = scaled * 10 + (given ? number.places[static_cast<size_t>(i)] - '0' : 0);
  }
  return scaled % step.numerator == 0;
}

size_t count_characters(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

bool are_unique(const Schema& list) {
  for (auto at = list.begin(); at != list.end(); ++at) {
    const auto same = [&](const Schema& one) { return same_value(one, *at); };
    if (std::any_of(list.begin(), at, same)) return false;
  }
  return true;
}

class Validator {
 public:
  Validator(const Schema& root, const std::string& place) : root_(root), place_(place) {}

  bool valid(const Schema& value, const Schema& schema, int depth) {
    if (depth > kMaxSchemaDepth) {
      fail(Code::unsupported, "json_schema", place_, ": references that lead to each other");
    }
    if (schema.is_boolean()) return schema.get<bool>();
    check(schema.is_object(), "json_schema", place_, ": a schema must be an object, true or false");
    refuse_keywords(schema, place_);
    if (!valid_logic(value, schema, depth + 1)) return false;
    if (schema.contains("type") && !has_type(value, schema["type"])) return false;
    if (schema.contains("const") && !same_value(schema["const"], value)) return false;
    const auto same = [&](const Schema& one) { return same_value(one, value); };
    const bool named =
        where(schema, "enum", [&](const Schema& list) { return std::ranges::any_of(list, same); });
    if (!named) return false;
    if (value.is_number()) return valid_number(value.get<double>(), schema);
    if (value.is_string()) return valid_string(value.get<std::string>(), schema);
    if (value.is_array()) return valid_array(value, schema, depth + 1);
    return !value.is_object() || valid_object(value, schema, depth + 1);
  }

 private:
  // Where the schema has the keyword.
  template <typename Test>
  bool where(const Schema& schema, const char* keyword, Test test) const {
    const auto at = schema.find(keyword);
    return at == schema.end() || test(*at);
  }

  bool valid_logic(const Schema& value, const Schema& schema, int depth) {
    const auto holds = [&](const Schema& part) { return valid(value, part, depth); };
    const auto count = [&](const Schema& list) {
      return std::count_if(list.begin(), list.end(), holds);
    };
    const bool plain =
        where(schema, "$ref",
              [&](const Schema& to) {
                return holds(resolve_pointer(root_, to.get<std::string>(), place_));
              }) &&
        where(schema, "allOf",
              [&](const Schema& list) { return count(list) == std::ssize(list); }) &&
        where(schema, "anyOf", [&](const Schema& list) { return count(list) > 0; }) &&
        where(schema, "oneOf", [&](const Schema& list) { return count(list) == 1; }) &&
        where(schema, "not", [&](const Schema& part) { return !holds(part); });
    if (!plain || !schema.contains("if")) return plain;
    return where(schema, holds(schema["if"]) ? "then" : "else", holds);
  }

  bool valid_number(double value, const Schema& schema) const {
    return where(schema, "minimum", [&](const Schema& x) { return value >= x.get<double>(); }) &&
           where(schema, "maximum", [&](const Schema& x) { return value <= x.get<double>(); }) &&
           where(schema, "exclusiveMinimum",
                 [&](const Schema& x) { return value > x.get<double>(); }) &&
           where(schema, "exclusiveMaximum",
                 [&](const Schema& x) { return value < x.get<double>(); }) &&
           where(schema, "multipleOf",
                 [&](const Schema& x) { return is_multiple(value, x, place_); });
  }

  bool valid_string(const std::string& value, const Schema& schema) const {
    const auto matches = [&](const Schema& pattern) {
      return matches_anywhere(pattern.get<std::string>(), value, place_);
    };
    return valid_size(schema, "minLength", "maxLength", count_characters(value)) &&
           where(schema, "pattern", matches) &&
           where(schema, kMorePatterns,
                 [&](const Schema& list) { return std::ranges::all_of(list, matches); }) &&
           where(schema, "format", [&](const Schema& name) {
             const char* pattern = format_pattern(name.get<std::string>());
             const bool fits =
                 pattern != nullptr && TextSet(parse_regex(place_, pattern), place_).holds(value);
             if (fits) return true;
             fail(Code::unsupported, "json_schema", place_,
                  ": format beside a value that is given");
           });
  }

  bool valid_size(const Schema& schema, const char* least, const char* most, size_t size) const {
    const auto count = static_cast<double>(size);
    return where(schema, least, [&](const Schema& x) { return count >= x.get<double>(); }) &&
           where(schema, most, [&](const Schema& x) { return count <= x.get<double>(); });
  }

  bool valid_array(const Schema& value, Schema schema, int depth) {
    name_tuples(schema);
    if (!valid_size(schema, "minItems", "maxItems", value.size())) return false;
    const Schema prefix = schema.value("prefixItems", Schema::array());
    const Schema items = schema.value("items", Schema(true));
    for (size_t i = 0; i < value.size(); ++i) {
      if (!valid(value[i], i < prefix.size() ? prefix[i] : items, depth)) return false;
    }
    const bool some = where(schema, "contains", [&](const Schema& part) {
      return schema.value("minContains", Schema(1)) == 0 ||
             std::any_of(value.begin(), value.end(),
                         [&](const Schema& item) { return valid(item, part, depth); });
    });
    return some && (schema.value("uniqueItems", Schema(false)) != true || are_unique(value));
  }

  bool valid_object(const Schema& value, const Schema& schema, int depth) {
    if (!valid_size(schema, "minProperties", "maxProperties", value.size())) return false;
    const auto all_there = [&](const Schema& names) {
      return std::ranges::all_of(
          names, [&](const Schema& name) { return value.contains(name.get<std::string>()); });
    };
    if (!where(schema, "required", all_there)) return false;
    const auto each_dependent = [&](const Schema& list) {
      for (const auto& [name, needs] : list.items()) {
        if (!value.contains(name)) continue;
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

  bool valid_member(const std::string& name, const Schema& value, const Schema& schema, int depth) {
    const Schema properties = schema.value("properties", Schema::object());
    bool known = properties.contains(name);
    if (known && !valid(value, properties[name], depth)) return false;
    const Schema patterns = schema.value("patternProperties", Schema::object());
    for (const auto& [pattern, part] : patterns.items()) {
      if (!matches_anywhere(pattern, name, place_)) continue;
      known = true;
      if (!valid(value, part, depth)) return false;
    }
    if (!known && !valid(value, schema.value("additionalProperties", Schema(true)), depth)) {
      return false;
    }
    return where(schema, "propertyNames",
                 [&](const Schema& part) { return valid(Schema(name), part, depth); });
  }

  const Schema& root_;
  const std::string& place_;
};

// The schema that has the $anchor; null: none.
const Schema* find_anchor(const Schema& schema, const std::string& name) {
  if (schema.is_object()) {
    const auto own = schema.find("$anchor");
    if (own != schema.end() && *own == name) return &schema;
  }
  if (!schema.is_structured()) return nullptr;
  for (const auto& [key, part] : schema.items()) {
    if (schema.is_object() && (key == "enum" || key == "const")) continue;
    if (const Schema* found = find_anchor(part, name)) return found;
  }
  return nullptr;
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

bool is_valid(const Schema& value, const Schema& schema, const Schema& root,
              const std::string& place) {
  try {
    return Validator(root, place).valid(value, schema, 0);
  } catch (const Schema::exception&) {
    fail(Code::invalid_argument, "json_schema", place, ": a keyword has a value of another type");
  }
}

bool same_value(const Schema& a, const Schema& b) {
  return nlohmann::json(a) == nlohmann::json(b);
}

bool matches_anywhere(const std::string& pattern, std::string_view text, const std::string& place) {
  const std::string where = cat("json_schema: ", place, "/pattern");
  return TextSet(parse_regex(where, pattern, {}, Match::anywhere), place).holds(text);
}

const Schema& resolve_pointer(const Schema& root, const std::string& pointer,
                              const std::string& place) {
  const auto want = [&](bool condition, std::string_view why) {
    check(condition, "json_schema", place, ": $ref ", pointer, why);
  };
  want(pointer.starts_with('#'), " does not begin with #");
  const std::string fragment = percent_decoded(pointer.substr(1));
  if (!fragment.empty() && fragment.front() != '/') {
    const Schema* found = find_anchor(root, fragment);
    want(found != nullptr, " names no $anchor");
    return *found;
  }
  try {
    const Schema::json_pointer path(fragment);
    if (root.contains(path)) return root.at(path);
  } catch (const Schema::exception&) {
    want(false, " is no JSON pointer");
  }
  want(false, " points to nothing");
  return root;
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
