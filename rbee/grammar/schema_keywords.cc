#include "rbee/grammar/schema_keywords.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rbee/grammar/budget.h"
#include "rbee/grammar/schema_validator.h"

namespace rbee::grammar {
namespace {

// The kind of a keyword's value.
enum class Is : uint8_t {
  number,
  count,
  flag,
  text,
  names,
  types,
  values,
  any,
  schema,
  schemas,
  tuple,  // schemas, or none
  items,  // a schema, or in older drafts a tuple
  map,    // of schemas
  needs   // a map of names or of schemas
};

struct Keyword {
  std::string_view name;
  std::string_view about;  // a type; empty: any
  Is is;
};

constexpr std::array<Keyword, 40> kKeywords{{{"properties", "object", Is::map},
                                             {"required", "object", Is::names},
                                             {"additionalProperties", "object", Is::schema},
                                             {"patternProperties", "object", Is::map},
                                             {"propertyNames", "object", Is::schema},
                                             {"minProperties", "object", Is::count},
                                             {"maxProperties", "object", Is::count},
                                             {"items", "array", Is::items},
                                             {"prefixItems", "array", Is::tuple},
                                             {"minItems", "array", Is::count},
                                             {"maxItems", "array", Is::count},
                                             {"uniqueItems", "array", Is::flag},
                                             {"contains", "array", Is::schema},
                                             {"pattern", "string", Is::text},
                                             {"minLength", "string", Is::count},
                                             {"maxLength", "string", Is::count},
                                             {"format", "string", Is::text},
                                             {"minimum", "number", Is::number},
                                             {"maximum", "number", Is::number},
                                             {"exclusiveMinimum", "number", Is::number},
                                             {"exclusiveMaximum", "number", Is::number},
                                             {"multipleOf", "number", Is::number},
                                             {"type", "", Is::types},
                                             {"enum", "", Is::values},
                                             {"const", "", Is::any},
                                             {"$ref", "", Is::text},
                                             {"allOf", "", Is::schemas},
                                             {"anyOf", "", Is::schemas},
                                             {"oneOf", "", Is::schemas},
                                             {"not", "", Is::schema},
                                             {"if", "", Is::schema},
                                             {"then", "", Is::schema},
                                             {"else", "", Is::schema},
                                             {"dependentRequired", "object", Is::needs},
                                             {"dependentSchemas", "", Is::needs},
                                             {"dependencies", "", Is::needs},
                                             {"minContains", "", Is::count},
                                             {"maxContains", "", Is::count},
                                             {"additionalItems", "", Is::schema},
                                             {kMorePatterns, "string", Is::names}}};

constexpr std::array<std::string_view, 7> kTypes{"null",   "boolean", "object", "array",
                                                 "string", "number",  "integer"};

const Keyword* find(std::string_view name) {
  const auto at = std::ranges::find(kKeywords, name, &Keyword::name);
  return at == kKeywords.end() ? nullptr : &*at;
}

// Whether the schema allows no value of the type that the keyword is about.
bool is_idle(const Keyword& keyword, const Schema& schema) {
  const auto types = schema.find("type");
  if (keyword.about.empty() || types == schema.end()) return false;
  const auto about = [&](const Schema& type) {
    return type == keyword.about || (keyword.about == "number" && type == "integer");
  };
  return types->is_array() ? std::ranges::none_of(*types, about) : !about(*types);
}

bool is_name_list(const Schema& value) {
  return value.is_array() && std::ranges::all_of(value, &Schema::is_string);
}

class Checker {
 public:
  Checker(std::string_view keyword, const std::string& place) : keyword_(keyword), place_(place) {}

  void run(Is is, const Schema& value) const {
    switch (is) {
      case Is::number:
        return want(is_number_value(value), " must be a number");
      case Is::count:
        return want(value.is_number() && value.get<double>() >= 0 &&
                        std::floor(value.get<double>()) == value.get<double>(),
                    " must be an integer of at least 0");
      case Is::flag:
        return want(value.is_boolean(), " must be true or false");
      case Is::text:
        return want(value.is_string(), " must be a string");
      case Is::names:
        return want(is_name_list(value), " must be an array of names");
      case Is::types:
        return types(value);
      case Is::values:
        return want(value.is_array() && !value.empty(), " must be an array of at least one value");
      case Is::any:
        return;
      default:
        return schemas(is, value);
    }
  }

 private:
  void want(bool condition, std::string_view why) const {
    check(condition, "json_schema", place_, ": ", keyword_, why);
  }

  void types(const Schema& value) const {
    const Schema list = value.is_array() ? value : Schema::array({value});
    want(is_name_list(list) && !list.empty(), " must be a name or an array of names");
    for (const Schema& type : list) {
      const std::string& name = type.get_ref<const std::string&>();
      check(std::ranges::find(kTypes, name) != kTypes.end(), "json_schema", place_,
            ": there is no type ", name);
    }
  }

  void schemas(Is is, const Schema& value) const {
    if (is == Is::schema || (is == Is::items && !value.is_array())) {
      return check_keywords(value, cat(place_, "/", keyword_));
    }
    if (is == Is::map || is == Is::needs) {
      want(value.is_object(), " must be an object");
    } else if (is == Is::schemas) {
      want(value.is_array() && !value.empty(), " must be an array of at least one schema");
    } else {
      want(value.is_array(), " must be an array of schemas");
    }
    for (const auto& [name, part] : value.items()) {
      if (is == Is::needs && part.is_array()) {
        want(is_name_list(part), cat("/", name, " must be an array of names or a schema"));
      } else {
        check_keywords(part, cat(place_, "/", keyword_, "/", name));
      }
    }
  }

  const std::string_view keyword_;
  const std::string& place_;
};

}  // namespace

bool stands_alone(const Schema& schema, std::string_view keyword) {
  return schema.contains(keyword) && std::ranges::none_of(kKeywords, [&](const Keyword& known) {
           return known.name != keyword && schema.contains(known.name);
         });
}

std::string implied_type(const Schema& schema) {
  for (const Keyword& keyword : kKeywords) {
    if (!keyword.about.empty() && schema.contains(keyword.name)) return std::string(keyword.about);
  }
  return {};
}

std::optional<Schema> few_values(const Schema& schema) {
  if (!schema.is_object()) return std::nullopt;
  if (schema.contains("const")) return Schema::array({schema["const"]});
  if (schema.contains("enum")) return schema["enum"];
  return std::nullopt;
}

Schema types_but(const Schema& types) {
  Schema out = Schema::array();
  for (const std::string_view name : kTypes) {
    if (name == "integer") continue;
    const bool named = std::ranges::any_of(
        types.is_array() ? types : Schema::array({types}), [&](const Schema& type) {
          return type == name || (name == "number" && type == "integer");
        });
    if (!named) out.push_back(name);
  }
  return out;
}

Schema without_idle(const Schema& schema) {
  Schema out = Schema::object();
  for (const auto& [name, value] : schema.items()) {
    const Keyword* keyword = find(name);
    if (keyword != nullptr && !is_idle(*keyword, schema)) out[name] = value;
  }
  return out;
}

void check_keywords(const Schema& schema, const std::string& place) {
  bill({.work = work_of_place(place)});
  if (schema.is_boolean()) return;
  check(schema.is_object(), "json_schema", place, ": a schema must be an object, true or false");
  for (const auto& [name, value] : schema.items()) {
    const Keyword* keyword = find(name);
    if (keyword != nullptr && !is_idle(*keyword, schema)) {
      Checker(name, place).run(keyword->is, value);
    }
  }
}

}  // namespace rbee::grammar
