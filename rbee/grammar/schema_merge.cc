#include "rbee/grammar/schema_merge.h"

#include <algorithm>
#include <array>

#include "rbee/core/error.h"

namespace rbee::grammar {
namespace {

constexpr std::array<std::string_view, 4> kLargest{"minimum", "exclusiveMinimum", "minLength",
                                                   "minItems"};
constexpr std::array<std::string_view, 4> kLeast{"maximum", "exclusiveMaximum", "maxLength",
                                                 "maxItems"};
constexpr std::array<std::string_view, 7> kNotes{"title",    "description", "default", "examples",
                                                 "$comment", "deprecated",  "$defs"};

template <size_t N>
bool among(const std::array<std::string_view, N>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

Schema as_list(const Schema& value) {
  return value.is_array() ? value : Schema::array({value});
}

Schema common(const Schema& a, const Schema& b) {
  Schema out = Schema::array();
  for (const Schema& value : as_list(a)) {
    const Schema others = as_list(b);
    if (std::ranges::find(others, value) != others.end()) out.push_back(value);
  }
  return out;
}

// "integer" is a "number".
Schema common_types(const Schema& a, const Schema& b) {
  Schema out = common(a, b);
  for (const auto& [one, other] :
       {std::pair(as_list(a), as_list(b)), std::pair(as_list(b), as_list(a))}) {
    const bool narrower = std::ranges::find(one, "integer") != one.end() &&
                          std::ranges::find(other, "number") != other.end();
    if (narrower && std::ranges::find(out, "integer") == out.end()) out.push_back("integer");
  }
  return out;
}

// `closed` allows no properties but its own.
void refuse_outside(const Schema& closed, const Schema& open, const std::string& place) {
  if (!closed.contains("additionalProperties") || closed["additionalProperties"] != false) return;
  const Schema known = closed.value("properties", Schema::object());
  const Schema others = open.value("properties", Schema::object());
  for (const auto& [name, schema] : others.items()) {
    if (known.contains(name)) continue;
    fail(Code::unsupported, "json_schema", place, ": the property ", name,
         " is added to a schema whose additionalProperties is false");
  }
}

void merge_properties(Schema& into, const Schema& more, const std::string& place) {
  for (const auto& [name, schema] : more.items()) {
    if (!into.contains(name)) {
      into[name] = schema;
    } else if (into[name] != schema) {
      into[name] = Schema{{"allOf", Schema::array({into[name], schema})}};
    }
  }
  check(into.is_object(), "json_schema", place, ": properties must be an object");
}

void merge_keyword(Schema& out, const std::string& name, const Schema& value,
                   const std::string& place) {
  Schema& own = out[name];
  if (own == value || among(kNotes, name)) return;
  const bool numbers = own.is_number() && value.is_number();
  if (numbers && among(kLargest, name)) {
    own = own.get<double>() < value.get<double>() ? value : own;
  } else if (numbers && among(kLeast, name)) {
    own = own.get<double>() > value.get<double>() ? value : own;
  } else if (name == "type") {
    own = common_types(own, value);
    check(!own.empty(), "json_schema", place, ": no type fits all parts");
  } else if (name == "enum") {
    own = common(own, value);
    check(!own.empty(), "json_schema", place, ": no value of enum fits all parts");
  } else if (name == "required") {
    for (const Schema& entry : as_list(value)) {
      if (std::ranges::find(own, entry) == own.end()) own.push_back(entry);
    }
  } else if (name == "properties") {
    merge_properties(own, value, place);
  } else if (name == "items") {
    own = Schema{{"allOf", Schema::array({own, value})}};
  } else if (name == "additionalProperties" && (own == true || value == false)) {
    own = value;
  } else if (name != "additionalProperties" || (own != false && value != true)) {
    fail(Code::unsupported, "json_schema", place, ": two different values of ", name,
         " cannot both be held");
  }
}

}  // namespace

Schema merge_schemas(const Schema& base, const Schema& more, const std::string& place) {
  if (more == true) return base;
  if (base == true) return more;
  check(base.is_object() && more.is_object(), "json_schema", place,
        ": a schema must be an object or true");
  refuse_outside(base, more, place);
  refuse_outside(more, base, place);
  Schema out = base;
  for (const auto& [name, value] : more.items()) {
    if (out.contains(name)) {
      merge_keyword(out, name, value, place);
    } else {
      out[name] = value;
    }
  }
  return out;
}

}  // namespace rbee::grammar
