#include "rbee/grammar/schema_apart.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "rbee/grammar/schema_keywords.h"
#include "rbee/grammar/schema_validator.h"

namespace rbee::grammar {
namespace {

using Texts = std::set<std::string>;

constexpr size_t kAtOnce = 16;  // values and properties that are a step of work
constexpr int32_t kNoGroup = -1;

struct Part {
  explicit Part(const Schema& from) : schema(&from) {
    const std::optional<Schema> few = few_values(from);
    if (!few) return;
    values.emplace();
    for (const Schema& value : *few) values->insert(value_text(value));
  }

  const Schema* schema;
  std::optional<Texts> values;  // of enum or const
};

struct Alternative {
  explicit Alternative(const Schema& from) : whole(from) {
    object = from.value("type", Schema()) == "object";
    for (const Schema& name : from.value("required", Schema::array())) {
      required.insert(name.get<std::string>());
    }
    const auto known = from.find("properties");
    if (known == from.end()) return;
    for (const auto& [name, part] : known->items()) properties.try_emplace(name, part);
  }

  // Whether no object without this property is valid, and it has few values.
  bool has_tag(const std::string& name) const {
    const auto at = properties.find(name);
    return object && required.contains(name) && at != properties.end() && at->second.values;
  }

  Part whole;
  bool object;  // and nothing else
  Texts required;
  std::map<std::string, Part> properties;
};

bool types_differ(const Schema& a, const Schema& b) {
  if (!a.is_object() || !b.is_object() || !a.contains("type") || !b.contains("type")) return false;
  const Schema types = b["type"].is_array() ? b["type"] : Schema::array({b["type"]});
  const Schema others = types_but(a["type"]);
  return std::ranges::all_of(types, [&](const Schema& type) {
    return std::ranges::find(others, type == "integer" ? Schema("number") : type) != others.end();
  });
}

class Overlaps {
 public:
  Overlaps(const std::vector<std::optional<Schema>>& schemas,
           const std::function<void(int64_t)>& spend)
      : spend_(spend), groups_(schemas.size(), kNoGroup), out_(schemas.size()) {
    for (const std::optional<Schema>& schema : schemas) {
      alternatives_.push_back(schema ? std::optional<Alternative>(*schema) : std::nullopt);
    }
  }

  std::vector<std::set<size_t>> run() {
    find_groups();
    for (size_t i = 0; i < alternatives_.size(); ++i) {
      for (size_t k = i + 1; k < alternatives_.size(); ++k) {
        if (groups_[i] == kNoGroup || groups_[i] != groups_[k]) compare(i, k);
      }
    }
    for (const auto& [value, members] : members_) {
      for (const size_t i : members) {
        for (const size_t k : members) {
          if (i < k && !out_[i].contains(k)) compare(i, k);
        }
      }
    }
    return std::move(out_);
  }

 private:
  // A group's members share no value if they have none of `members_` in common.
  void find_groups() {
    std::map<std::string, int32_t> tags;  // and how many have it
    for (const auto& one : alternatives_) {
      if (!one || one->whole.values) continue;
      for (const auto& [name, part] : one->properties) tags[name] += one->has_tag(name);
    }
    const auto most =
        std::ranges::max_element(tags, {}, [](const auto& entry) { return entry.second; });
    for (size_t i = 0; i < alternatives_.size(); ++i) {
      const std::optional<Alternative>& one = alternatives_[i];
      if (!one) continue;
      if (one->whole.values) {
        join(0, i, *one->whole.values);
      } else if (most != tags.end() && one->has_tag(most->first)) {
        join(1, i, *one->properties.at(most->first).values);
      }
    }
  }

  void join(int32_t group, size_t alternative, const Texts& values) {
    groups_[alternative] = group;
    for (const std::string& value : values) members_[{group, value}].push_back(alternative);
  }

  void compare(size_t i, size_t k) {
    if (!alternatives_[i] || !alternatives_[k]) return;
    spend_(1);
    if (are_apart(*alternatives_[i], *alternatives_[k])) return;
    out_[i].insert(k);
    out_[k].insert(i);
  }

  bool are_apart(const Alternative& a, const Alternative& b) {
    if (differ(a.whole, b.whole)) return true;
    if (!a.object && !b.object) return false;
    spend_(static_cast<int64_t>((a.properties.size() + a.required.size() + b.required.size()) /
                                kAtOnce));
    for (const auto& [name, mine] : a.properties) {
      if (!a.required.contains(name) && !b.required.contains(name)) continue;
      const auto other = b.properties.find(name);
      if (other != b.properties.end() && differ(mine, other->second)) return true;
    }
    return needs_what_is_closed(a, b) || needs_what_is_closed(b, a);
  }

  bool differ(const Part& a, const Part& b) {
    if (a.values && b.values) {
      const Texts& few = a.values->size() < b.values->size() ? *a.values : *b.values;
      const Texts& many = &few == &*a.values ? *b.values : *a.values;
      spend_(static_cast<int64_t>(few.size() / kAtOnce));
      return std::ranges::none_of(few, [&](const std::string& x) { return many.contains(x); });
    }
    if (a.values) return unfit(*a.schema, *b.schema);
    if (b.values) return unfit(*b.schema, *a.schema);
    return types_differ(*a.schema, *b.schema);
  }

  // Whether no value that `named` names is of a type of `schema`.
  bool unfit(const Schema& named, const Schema& schema) {
    if (!schema.is_object() || !schema.contains("type")) return false;
    const std::optional<Schema> values = few_values(named);
    spend_(static_cast<int64_t>(values->size() / kAtOnce));
    return std::ranges::none_of(*values,
                                [&](const Schema& x) { return has_type(x, schema["type"]); });
  }

  // Whether every object under `a` needs a name that `b` does not allow.
  static bool needs_what_is_closed(const Alternative& a, const Alternative& b) {
    const Schema& closed = *b.whole.schema;
    if (closed.value("additionalProperties", Schema(true)) != false) return false;
    if (closed.contains("patternProperties")) return false;
    return std::ranges::any_of(
        a.required, [&](const std::string& name) { return !b.properties.contains(name); });
  }

  const std::function<void(int64_t)>& spend_;
  std::vector<std::optional<Alternative>> alternatives_;
  std::vector<int32_t> groups_;
  std::map<std::pair<int32_t, std::string>, std::vector<size_t>> members_;
  std::vector<std::set<size_t>> out_;
};

}  // namespace

std::vector<std::set<size_t>> overlaps(const std::vector<std::optional<Schema>>& schemas,
                                       const std::function<void(int64_t)>& spend) {
  return Overlaps(schemas, spend).run();
}

}  // namespace rbee::grammar
