// Objects of JSON schemas.

#include <algorithm>
#include <map>
#include <set>

#include "rbee/grammar/budget.h"
#include "rbee/grammar/regex.h"
#include "rbee/grammar/schema_parts.h"
#include "rbee/grammar/schema_validator.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {
namespace {

// More optional properties in a row are rules of their own, so that the grammar stays small.
constexpr size_t kMaxInlined = 32;
constexpr int64_t kMaxInOrder = 100;  // optional properties, each of which may come first
constexpr int64_t kMaxOptional = 400;
constexpr int64_t kNameWork = 10;   // of looking for a name
constexpr size_t kMaxPatterns = 4;  // of patternProperties: each set of them is a class of names

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  fail(Code::unsupported, "json_schema", place, ": ", why);
}

class Objects {
 public:
  Objects(SchemaBuilder& builder, const Schema& schema, const std::string& place, int depth)
      : builder_(builder),
        rules_(builder.rules()),
        schema_(schema),
        place_(place),
        depth_(depth),
        named_(schema.value("properties", Schema::object())),
        needs_(schema.value("dependentRequired", Schema::object())),
        patterns_(schema.value("patternProperties", Schema::object())) {
    const Schema required = schema.value("required", Schema::array());
    for (const Schema& name : required) required_.insert(name.get<std::string>());
    for (const auto& [pattern, schema_of] : patterns_.items()) pattern_names_.push_back(pattern);
    name_the_few();
    list_names();
    if (pattern_names_.size() > kMaxPatterns) {
      refuse(place, cat("patternProperties of more than ", kMaxPatterns, " is not supported"));
    }
  }

  ExprPtr run() {
    Counted list{.parts = properties(), .more = additional()};
    list.min = least_of(schema_, "minProperties", place_);
    list.max = most_of(schema_, "maxProperties");
    list.more_counts = 1;  // others may have the same name
    if (list.max != kUnlimited && list.min > list.max) {
      throw NothingFits(place_, "minProperties is above maxProperties");
    }
    const auto first = std::ranges::find_if(list.parts, &Counted::Part::required);
    const bool many = first - list.parts.begin() > kMaxInOrder;
    if (first - list.parts.begin() > kMaxOptional) {
      refuse(place_, cat("more than ", kMaxOptional, " optional properties are not supported"));
    }
    const bool counts = list.min > 0 || list.max != kUnlimited || !needs_.empty();
    ExprPtr body = counts || many ? counted(list) : in_order(list);
    body = sequence({std::move(body), rules_.space()});
    return rules_.add(place_,
                      sequence({literal("{"), rules_.space(), std::move(body), literal("}")}));
  }

 private:
  // If propertyNames lists all possible names, these are properties, each of which comes once.
  void name_the_few() {
    if (!schema_.contains("propertyNames")) return;
    const auto few =
        builder_.logic().values(schema_["propertyNames"], place_ + "/propertyNames", depth_ + 1);
    if (!few) return;
    only_named_ = true;
    if (!others_may_come()) return;
    for (const Schema& value : *few) {
      if (!value.is_string()) continue;
      const std::string name = value.get<std::string>();
      if (!named_.contains(name)) named_[name] = schema_of(name);
    }
  }

  bool others_may_come() const {
    return schema_.contains("additionalProperties") || !patterns_.empty() ||
           (named_.empty() && required_.empty() && needs_.empty());
  }

  // In order; properties that other keywords name come last.
  void list_names() {
    std::set<std::string> known;
    const auto add = [&](const std::string& name) {
      if (known.insert(name).second) names_.push_back(name);
    };
    for (const auto& [name, schema] : named_.items()) add(name);
    for (const std::string& name : required_) add(name);
    for (const auto& [name, others] : needs_.items()) {
      add(name);
      for (const Schema& other : others) add(other.get<std::string>());
    }
  }

  bool name_fits(const std::string& name) const {
    return !schema_.contains("propertyNames") ||
           builder_.logic().holds(Schema(name), schema_["propertyNames"], place_);
  }

  // The condition on a named property, or on one that only `required` names.
  Schema schema_of(const std::string& name) const {
    Schema out = named_.contains(name) ? named_[name] : Schema(true);
    bool known = named_.contains(name);
    for (const auto& [pattern, schema] : patterns_.items()) {
      if (!builder_.logic().matches(pattern, name, place_)) continue;
      out = both_schemas(out, schema);
      known = true;
    }
    return known ? out : schema_.value("additionalProperties", Schema(true));
  }

  std::vector<Counted::Part> properties() {
    std::map<std::string, ExprPtr> pairs;
    for (const std::string& name : names_) {
      const std::string place = cat(place_, "/properties/", name);
      ExprPtr value =
          name_fits(name) ? builder_.convert_if_any(schema_of(name), place, depth_ + 1) : nullptr;
      if (value == nullptr && required_.contains(name)) {
        throw NothingFits(place, cat("required names ", name, ", for which no value fits"));
      }
      if (value == nullptr) continue;
      ExprPtr pair = rules_.pair(literal(Schema(name).dump()), std::move(value));
      if (named_.size() > kMaxInlined) pair = rules_.add(place, pair);
      pairs[name] = std::move(pair);
    }
    drop_the_needy(pairs);
    std::vector<Counted::Part> out;
    std::map<std::string, size_t> at;
    for (const std::string& name : names_) {
      if (!pairs.contains(name)) continue;
      at[name] = out.size();
      out.push_back({pairs[name], required_.contains(name)});
    }
    for (const auto& [name, others] : needs_.items()) {
      if (!at.contains(name)) continue;
      for (const Schema& other : others)
        out[at[name]].needs.push_back(at.at(other.get<std::string>()));
    }
    return out;
  }

  // Without properties that need one that cannot come.
  void drop_the_needy(std::map<std::string, ExprPtr>& pairs) const {
    for (bool again = true; again;) {
      again = false;
      for (const auto& [name, others] : needs_.items()) {
        bill({.work = kNameWork * (1 + std::ssize(others))});
        const bool all_fit = std::ranges::all_of(
            others, [&](const Schema& other) { return pairs.contains(other.get<std::string>()); });
        if (all_fit || pairs.erase(name) == 0) continue;
        again = true;
        if (required_.contains(name)) {
          throw NothingFits(place_, cat("dependentRequired: ", name, " needs what no value fits"));
        }
      }
    }
  }

  // A pair with a name that is not in names_; null where there are none.
  ExprPtr additional() {
    if (only_named_) return nullptr;
    const bool given = schema_.contains("additionalProperties");
    const bool others = given || (names_.empty() && patterns_.empty());
    const Schema rest =
        others ? schema_.value("additionalProperties", Schema(true)) : Schema(false);
    if (patterns_.empty() && !schema_.contains("propertyNames")) {
      ExprPtr value = builder_.convert_if_any(rest, place_ + "/additionalProperties", depth_ + 1);
      if (value == nullptr) return nullptr;
      ExprPtr key = rules_.add(place_ + " (other names)", rules_.other_key(names_));
      return rules_.add(place_ + "/additionalProperties",
                        rules_.pair(std::move(key), std::move(value)));
    }
    std::vector<ExprPtr> ways;
    const std::vector<TextSet> matching = names_of_patterns();
    add_pairs(matching, {.keys = other_keys(), .rest = rest}, ways);
    if (ways.empty()) return nullptr;
    return rules_.add(place_ + "/patternProperties", choice(std::move(ways)));
  }

  TextSet other_keys() {
    int64_t& work = builder_.text_work();
    TextSet out = schema_.contains("propertyNames")
                      ? TextSet(plain_strings(builder_, schema_["propertyNames"],
                                              place_ + "/propertyNames", depth_ + 1),
                                place_, work)
                      : TextSet(JsonRules::quoted(any_plain_string()), place_, work);
    for (const std::string& name : names_) {
      out = TextSet::without(out, {literal(Schema(name).dump()), place_, work}, work);
    }
    return out;
  }

  std::vector<TextSet> names_of_patterns() {
    std::vector<TextSet> out;
    for (const std::string& pattern : pattern_names_) {
      const ExprPtr text = parse_regex(cat("json_schema: ", place_, "/patternProperties"), pattern,
                                       JsonRules::string_chars, Match::anywhere);
      out.emplace_back(JsonRules::quoted(text), place_, builder_.text_work());
    }
    return out;
  }

  // Names that match some of the first `told` patterns and not the others of them.
  struct Class {
    TextSet keys;
    Schema rest;                     // of names that match none
    std::vector<std::string> found;  // the patterns that they match
    size_t told = 0;
  };

  // The pairs of each set of patterns that names match.
  void add_pairs(const std::vector<TextSet>& matching, const Class& names,
                 std::vector<ExprPtr>& ways) {
    if (names.keys.empty()) return;
    if (names.told < matching.size()) {
      const TextSet& set = matching[names.told];
      int64_t& work = builder_.text_work();
      Class with{TextSet::both(names.keys, set, work), names.rest, names.found, names.told + 1};
      Class without{TextSet::without(names.keys, set, work), names.rest, names.found,
                    names.told + 1};
      with.found.push_back(pattern_names_[names.told]);
      add_pairs(matching, without, ways);
      return add_pairs(matching, with, ways);
    }
    Schema schema = names.found.empty() ? names.rest : Schema(true);
    std::string place =
        place_ + (names.found.empty() ? "/additionalProperties" : "/patternProperties");
    for (const std::string& pattern : names.found) {
      schema = both_schemas(schema, patterns_[pattern]);
      place += cat("/", pattern);
    }
    ExprPtr value = builder_.convert_if_any(schema, place, depth_ + 1);
    if (value == nullptr) return;
    ways.push_back(
        rules_.pair(rules_.add(place + " (names)", names.keys.expr()), std::move(value)));
  }

  ExprPtr counted(const Counted& list) {
    if (ExprPtr out = counted_list(rules_, list, place_)) return out;
    if (list.more && list.min > std::ssize(list.parts)) {
      refuse(place_, "minProperties above 1 is supported for named properties alone");
    }
    throw NothingFits(place_,
                      "there are fewer properties than minProperties, or more than "
                      "maxProperties are required");
  }

  ExprPtr comma(const ExprPtr& pair) { return sequence({literal(","), rules_.space(), pair}); }

  // The text that may follow a first pair.
  ExprPtr after_first(const Counted& list, size_t from) {
    std::vector<ExprPtr> parts;
    for (size_t i = from; i < list.parts.size(); ++i) {
      const ExprPtr next = comma(list.parts[i].body);
      parts.push_back(list.parts[i].required ? next : optional(next));
    }
    if (list.more) parts.push_back(repeat(comma(list.more), 0, kUnlimited));
    return sequence(std::move(parts));
  }

  // By the first pair that comes: all before it are optional.
  ExprPtr in_order(const Counted& list) {
    std::vector<ExprPtr> ways;
    size_t i = 0;
    for (; i < list.parts.size(); ++i) {
      ways.push_back(sequence({list.parts[i].body, after_first(list, i + 1)}));
      if (list.parts[i].required) break;
    }
    const bool may_be_empty = i == list.parts.size();
    if (may_be_empty && list.more) ways.push_back(sequence({list.more, after_first(list, i)}));
    if (ways.empty()) return sequence({});
    ExprPtr body = choice(std::move(ways));
    return may_be_empty ? optional(std::move(body)) : body;
  }

  SchemaBuilder& builder_;
  JsonRules& rules_;
  const Schema& schema_;
  const std::string& place_;
  const int depth_;
  Schema named_;
  const Schema needs_;  // names, and the names that come with them
  const Schema patterns_;
  std::vector<std::string> pattern_names_;
  std::set<std::string> required_;
  std::vector<std::string> names_;  // of all properties that keywords name
  bool only_named_ = false;
};

}  // namespace

ExprPtr object_of_schema(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                         int depth) {
  return Objects(builder, schema, place, depth).run();
}

}  // namespace rbee::grammar
