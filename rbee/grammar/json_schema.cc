#include "rbee/grammar/json_schema.h"

#include <algorithm>
#include <map>

#include "rbee/core/error.h"
#include "rbee/grammar/budget.h"
#include "rbee/grammar/json_rules.h"
#include "rbee/grammar/schema_keywords.h"
#include "rbee/grammar/schema_logic.h"
#include "rbee/grammar/schema_parts.h"
#include "rbee/grammar/schema_reader.h"
#include "rbee/grammar/schema_validator.h"

namespace rbee::grammar {
namespace {

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  fail(Code::unsupported, "json_schema", place, ": ", why);
}

class Converter : public SchemaBuilder {
 public:
  explicit Converter(const Schema& root) : SchemaBuilder(root), root_(root) {}

  Grammar run() {
    ExprPtr top = convert(root_, "#", 0);
    return rules().finish(std::move(top));
  }

  ExprPtr convert(const Schema& schema, const std::string& place, int depth) override;

 private:
  struct Shared {
    int32_t rule = 0;
    bool empty = false;  // no value fits
  };
  ExprPtr shared(const std::string& key, const std::string& name, const Schema& schema, int depth,
                 ExprPtr (Converter::*make)(const Schema&, const std::string&, int));
  ExprPtr any_of(const Schema& list, const std::string& place, int depth);
  ExprPtr by_ways(const Schema& schema, const std::string& place, int depth);
  ExprPtr way(const Schema& schema, const std::string& place, int depth);
  ExprPtr values(const Schema& schema, const std::string& place);
  ExprPtr of_type(const std::string& type, const Schema& schema, const std::string& place,
                  int depth);

  const Schema& root_;
  std::map<std::string, Shared> shared_;
};

ExprPtr Converter::convert(const Schema& schema, const std::string& place, int depth) {
  if (depth > kMaxSchemaDepth) refuse(place, cat("nested more than ", kMaxSchemaDepth, " deep"));
  logic().spend(place);
  if (schema == true || (schema.is_object() && schema.empty())) return rules().value();
  if (schema == false) throw NothingFits(place, "no value fits the schema false");
  refuse_keywords(schema, place);
  if (stands_alone(schema, "$ref")) {
    const std::string pointer = schema["$ref"].get<std::string>();
    return shared(pointer, pointer, logic().resolve(pointer, place), depth, &Converter::convert);
  }
  if (stands_alone(schema, "anyOf")) return any_of(schema["anyOf"], place, depth);
  // What merging makes of a recursive schema is recursive only if it is known again.
  const bool merges = schema.contains("allOf") || schema.contains("not");
  if (!merges) return by_ways(schema, place, depth);
  return shared(schema.dump(), place, schema, depth, &Converter::by_ways);
}

// One rule for the same schema, which may use itself: what was made of it before it turned out that
// no value fits matches nothing.
ExprPtr Converter::shared(const std::string& key, const std::string& name, const Schema& schema,
                          int depth,
                          ExprPtr (Converter::*make)(const Schema&, const std::string&, int)) {
  const auto [at, fresh] = shared_.try_emplace(key);
  bill({.work = work_of_place(key), .bytes = fresh ? std::ssize(key) : 0});
  Shared& known = at->second;
  if (known.empty) throw NothingFits(name, "no value fits it");
  if (!fresh) return rule(known.rule);
  known.rule = rules().reserve(name);
  try {
    ExprPtr body = (this->*make)(schema, name, depth + 1);
    rules().define(known.rule, std::move(body));
  } catch (const NothingFits&) {
    rules().define(known.rule, choice({}));
    known.empty = true;
    throw;
  }
  return rule(known.rule);
}

ExprPtr Converter::any_of(const Schema& list, const std::string& place, int depth) {
  std::vector<ExprPtr> ways;
  for (size_t i = 0; i < list.size(); ++i) {
    ExprPtr one = convert_if_any(list[i], cat(place, "/anyOf/", i), depth + 1);
    if (one) ways.push_back(std::move(one));
  }
  if (ways.empty()) throw NothingFits(place, "no schema of anyOf allows a value");
  return choice(std::move(ways));
}

ExprPtr Converter::by_ways(const Schema& schema, const std::string& place, int depth) {
  std::vector<ExprPtr> out;
  const std::vector<Schema> all = logic().ways(schema, place, depth);
  HeldBytes held;
  for (const Schema& one : all) held.add(static_cast<size_t>(tree_bytes(one)));
  if (all.size() == 1) return way(all.front(), place, depth);
  for (const Schema& one : all) {
    try {
      out.push_back(way(one, place, depth));
    } catch (const NothingFits&) {
      continue;
    }
  }
  if (out.empty()) throw NothingFits(place, "no value fits all parts");
  return choice(std::move(out));
}

ExprPtr Converter::values(const Schema& schema, const std::string& place) {
  std::vector<ExprPtr> ways;
  const auto list = logic().named_values(schema, place);
  for (const Schema& value : *list) ways.push_back(literal(json_text(value)));
  if (ways.empty()) throw NothingFits(place, "no value of enum or const fits all parts");
  return choice(std::move(ways));
}

ExprPtr Converter::way(const Schema& schema, const std::string& place, int depth) {
  if (schema.contains("const") || schema.contains("enum")) return values(schema, place);
  const auto some = [&](const std::vector<std::string>& types) {
    std::vector<ExprPtr> ways;
    std::string why;
    for (const std::string& type : types) {
      try {
        ways.push_back(of_type(type, schema, place, depth));
      } catch (const NothingFits&) {
        if (types.size() == 1) throw;
      }
    }
    if (ways.empty()) throw NothingFits(place, "no value of its types fits all parts");
    return choice(std::move(ways));
  };
  if (schema.contains("type")) {
    const Schema type = schema["type"];
    const Schema list = type.is_array() ? type : Schema::array({type});
    return some(list.get<std::vector<std::string>>());
  }
  const std::string type = implied_type(schema);
  if (!type.empty()) return some({type});
  if (!schema.contains("not")) return rules().value();
  std::vector<std::string> types{"null", "boolean", "string", "number"};
  for (const char* structured : {"array", "object"}) {
    const std::vector<Schema> values = excluded_by(schema).values;
    const bool named = std::ranges::any_of(
        values, [&](const Schema& value) { return has_type(value, structured); });
    if (!named) types.emplace_back(structured);
  }
  return some(types);
}

ExprPtr Converter::of_type(const std::string& type, const Schema& schema, const std::string& place,
                           int depth) {
  const bool structured = type == "object" || type == "array";
  if (structured) {
    for (const Schema& value : excluded_by(schema).values) {
      if (has_type(value, type)) refuse(place, cat("not beside a value of type ", type));
    }
  }
  if (type == "object") return object_of_schema(*this, schema, place, depth);
  if (type == "array") return array_of_schema(*this, schema, place, depth);
  if (type == "string") return string_of_schema(*this, schema, place);
  if (type == "number") return number_of_schema(*this, schema, place, false);
  if (type == "integer") return number_of_schema(*this, schema, place, true);
  std::vector<ExprPtr> ways;
  for (const Schema& value :
       type == "null" ? Schema::array({nullptr}) : Schema::array({true, false})) {
    if (logic().holds(value, schema, place)) ways.push_back(literal(value.dump()));
  }
  if (ways.empty()) throw NothingFits(place, cat("no value of type ", type, " fits"));
  return choice(std::move(ways));
}

}  // namespace

ExprPtr SchemaBuilder::convert_if_any(const Schema& schema, const std::string& place, int depth) {
  try {
    return convert(schema, place, depth);
  } catch (const NothingFits&) {
    return nullptr;
  }
}

Grammar parse_json_schema(std::string_view schema) {
  const Schema root = read_schema(schema);
  check_keywords(root, "#");
  return Converter(root).run();
}

Grammar json_object_grammar() {
  JsonRules rules;
  ExprPtr root = rules.object();
  return rules.finish(std::move(root));
}

ExprPtr json_string_chars(const std::vector<CharRange>& ranges) {
  return JsonRules::string_chars(ranges);
}

}  // namespace rbee::grammar
