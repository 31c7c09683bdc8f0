// Arrays of JSON schemas, and lists with a count of their parts.

#include <algorithm>
#include <compare>
#include <map>
#include <set>

#include "rbee/grammar/budget.h"
#include "rbee/grammar/schema_parts.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxPlaces = 4096;  // of a counted list
constexpr int64_t kPlaceWork = 20;    // of one, and of each part that is needed or not allowed
constexpr int64_t kPlaceBytes = 64;
constexpr size_t kMaxSubsets = 7;      // values to write every order of
constexpr int64_t kMaxBeforeOne = 64;  // items that may come before the one of `contains`

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  fail(Code::unsupported, "json_schema", place, ": ", why);
}

ExprPtr list_in(JsonRules& rules, const char* open, ExprPtr body, const char* close) {
  return sequence({literal(open), rules.space(), std::move(body), literal(close)});
}

struct Counts {
  int64_t min, max;
};

class CountedRules {
 public:
  CountedRules(JsonRules& rules, const Counted& list, const std::string& place)
      : rules_(rules), list_(list), place_(place) {
    cap_ = list.max != kUnlimited ? list.max : std::max<int64_t>(list.min, 1);
    cap_ = std::min<int64_t>(cap_, std::ssize(list.parts));
    if ((std::ssize(list.parts) + 1) * (cap_ + 1) > kMaxPlaces) refuse_many();
    needed_by_.resize(list.parts.size());
    for (size_t i = 0; i < list.parts.size(); ++i) {
      for (const size_t other : list.parts[i].needs) needed_by_[other].push_back(i);
    }
  }

  ExprPtr run() { return after({}); }

 private:
  struct Place {
    size_t i = 0;                    // the next part
    int64_t have = 0;                // parts before it
    std::set<size_t> must = {};      // later parts that those before it need
    std::set<size_t> must_not = {};  // later parts that need one that did not come
    auto operator<=>(const Place&) const = default;
  };

  [[noreturn]] void refuse_many() const {
    refuse(place_,
           "minProperties, maxProperties, dependentRequired or uniqueItems needs too many rules");
  }

  Place behind(const Place& at, bool came) const {
    Place out{at.i + 1, came ? std::min(at.have + 1, cap_) : at.have, at.must, at.must_not};
    out.must.erase(at.i);
    out.must_not.erase(at.i);
    for (const size_t k : came ? list_.parts[at.i].needs : needed_by_[at.i]) {
      if (k > at.i) (came ? out.must : out.must_not).insert(k);
    }
    return out;
  }

  ExprPtr comma(ExprPtr part, bool first) const {
    return first ? part : sequence({literal(","), rules_.space(), std::move(part)});
  }

  // What follows; null: nothing can.
  ExprPtr after(const Place& at) {
    if (at.i == list_.parts.size()) return tail(at.have);
    const auto known = known_.find(at);
    if (known != known_.end()) return known->second;
    if (std::ssize(known_) > kMaxPlaces) refuse_many();
    const int64_t size = std::ssize(at.must) + std::ssize(at.must_not);
    bill({.work = kPlaceWork * (1 + size), .bytes = kPlaceBytes * (1 + size)});
    const Counted::Part& part = list_.parts[at.i];
    const bool room = list_.max == kUnlimited || at.have < list_.max;
    std::vector<ExprPtr> ways;
    if (room && !at.must_not.contains(at.i)) {
      if (ExprPtr rest = after(behind(at, true))) {
        ways.push_back(sequence({comma(part.body, at.have == 0), std::move(rest)}));
      }
    }
    if (!part.required && !at.must.contains(at.i)) {
      if (ExprPtr rest = after(behind(at, false))) ways.push_back(std::move(rest));
    }
    ExprPtr out = ways.empty() ? nullptr : rules_.add(place_, choice(std::move(ways)));
    return known_[at] = out;
  }

  ExprPtr tail(int64_t have) {
    const int64_t missing = std::max<int64_t>(list_.min - have, 0);
    const int64_t room = list_.max == kUnlimited ? kUnlimited : list_.max - have;
    if (missing > (list_.more ? list_.more_counts : 0)) return nullptr;
    if (room != kUnlimited && missing > room) return nullptr;
    if (!list_.more) return sequence({});
    if (room == 0) return sequence({});
    const ExprPtr next = comma(list_.more, false);
    if (have > 0) return repeat(next, missing, room);
    const int64_t rest = room == kUnlimited ? kUnlimited : room - 1;
    ExprPtr all = sequence({list_.more, repeat(next, std::max<int64_t>(missing - 1, 0), rest)});
    return missing > 0 ? all : optional(std::move(all));
  }

  JsonRules& rules_;
  const Counted& list_;
  const std::string& place_;
  int64_t cap_;  // more parts are not told apart
  std::vector<std::vector<size_t>> needed_by_;
  std::map<Place, ExprPtr> known_;
};

// Every order of every set of the values with a size within the counts.
class Subsets {
 public:
  Subsets(JsonRules& rules, const std::vector<Schema>& values, Counts counts,
          const std::string& place)
      : rules_(rules), values_(values), counts_(counts), place_(place) {}

  ExprPtr after(uint32_t used, int64_t have) {
    if (const auto known = known_.find(used); known != known_.end()) return known->second;
    std::vector<ExprPtr> ways;
    if (have >= counts_.min) ways.push_back(sequence({}));
    for (size_t i = 0; i < values_.size() && (counts_.max == kUnlimited || have < counts_.max);
         ++i) {
      if (((used >> i) & 1) != 0) continue;
      std::vector<ExprPtr> parts{literal(json_text(values_[i])),
                                 after(used | (uint32_t{1} << i), have + 1)};
      if (have > 0) parts.insert(parts.begin(), {literal(","), rules_.space()});
      ways.push_back(sequence(std::move(parts)));
    }
    return known_[used] = rules_.add(place_, choice(std::move(ways)));
  }

 private:
  JsonRules& rules_;
  const std::vector<Schema>& values_;
  const Counts counts_;
  const std::string& place_;
  std::map<uint32_t, ExprPtr> known_;
};

ExprPtr unique_array(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                     int depth, Counts counts) {
  for (const char* keyword : {"prefixItems", "contains"}) {
    if (schema.contains(keyword)) refuse(place, cat("uniqueItems beside ", keyword));
  }
  const auto values =
      builder.logic().values(schema.value("items", Schema(true)), place + "/items", depth + 1);
  if (!values) {
    refuse(place,
           "uniqueItems is supported for items of enum, const, boolean, null and integers between "
           "near bounds");
  }
  const auto size = std::ssize(*values);
  if (counts.min > size) throw NothingFits(place, "minItems is above the number of unique items");
  if (counts.max == kUnlimited || counts.max > size) counts.max = size;
  JsonRules& rules = builder.rules();
  ExprPtr body;
  if (values->size() <= kMaxSubsets) {
    body = Subsets(rules, *values, counts, place).after(0, 0);
  } else {
    // Each comes once at most, so that their number alone needs no count.
    Counted list{.min = counts.min, .max = counts.max == size ? kUnlimited : counts.max};
    for (const Schema& value : *values) list.parts.push_back({literal(json_text(value))});
    body = counted_list(rules, list, place);
  }
  return rules.add(place, list_in(rules, "[", sequence({std::move(body), rules.space()}), "]"));
}

// Some item is `one`, the others `each`.
ExprPtr array_with(JsonRules& rules, const ExprPtr& each, const ExprPtr& one, Counts counts,
                   const std::string& place) {
  counts.min = std::max<int64_t>(counts.min, 1);
  if (counts.max == 0) throw NothingFits(place, "contains asks for more than maxItems");
  const bool open = counts.max == kUnlimited;
  if (!open && counts.max > kMaxBeforeOne) {
    refuse(place, cat("contains beside maxItems above ", kMaxBeforeOne, " is not supported"));
  }
  std::vector<ExprPtr> ways;
  const auto add = [&](int64_t before, int64_t most_before, int64_t behind, int64_t most_behind) {
    const ExprPtr first = sequence({each, literal(","), rules.space()});
    const ExprPtr more = sequence({literal(","), rules.space(), each});
    ways.push_back(
        sequence({repeat(first, before, most_before), one, repeat(more, behind, most_behind)}));
  };
  const int64_t last = open ? counts.min - 1 : counts.max - 1;
  for (int64_t before = 0; before <= last; ++before) {
    const int64_t behind = std::max<int64_t>(counts.min - 1 - before, 0);
    if (open && before == last) {
      add(before, kUnlimited, behind, kUnlimited);
    } else {
      add(before, before, behind, open ? kUnlimited : counts.max - 1 - before);
    }
  }
  return rules.add(place,
                   list_in(rules, "[", sequence({choice(std::move(ways)), rules.space()}), "]"));
}

}  // namespace

ExprPtr counted_list(JsonRules& rules, const Counted& list, const std::string& place) {
  return CountedRules(rules, list, place).run();
}

ExprPtr array_of_schema(SchemaBuilder& builder, const Schema& schema, const std::string& place,
                        int depth) {
  Counts counts{least_of(schema, "minItems", place), most_of(schema, "maxItems")};
  if (counts.max != kUnlimited && counts.min > counts.max) {
    throw NothingFits(place, "minItems is above maxItems");
  }
  const bool several = counts.max == kUnlimited || counts.max > 1;
  if (several && schema.value("uniqueItems", Schema(false)) == true) {
    return unique_array(builder, schema, place, depth, counts);
  }
  const Schema prefix = schema.value("prefixItems", Schema::array());
  const Schema items = schema.value("items", Schema(true));
  if (schema.contains("contains") && schema.value("minContains", Schema(1)) == 1) {
    if (!prefix.empty()) refuse(place, "contains beside prefixItems is not supported");
    const Schema one = both_schemas(items, schema["contains"]);
    ExprPtr each = builder.convert(items, place + "/items", depth + 1);
    ExprPtr found = builder.convert(one, place + "/contains", depth + 1);
    return array_with(builder.rules(), each, found, counts, place);
  }
  std::vector<ExprPtr> first;
  for (size_t i = 0; i < prefix.size(); ++i) {
    if (counts.max != kUnlimited && std::ssize(first) >= counts.max) break;
    ExprPtr item = builder.convert_if_any(prefix[i], cat(place, "/prefixItems/", i), depth + 1);
    if (item == nullptr) {
      counts.max = std::ssize(first);
      break;
    }
    first.push_back(std::move(item));
  }
  const auto fixed = std::ssize(first);
  if (counts.max != kUnlimited && counts.max < counts.min) {
    throw NothingFits(place, "minItems asks for more than prefixItems allows");
  }
  counts.min = std::max<int64_t>(counts.min - fixed, 0);
  if (counts.max != kUnlimited) counts.max -= fixed;
  // Behind a prefix, nothing unless it is asked for.
  if (fixed > 0 && !schema.contains("items") && counts.min == 0) counts.max = 0;
  const ExprPtr more =
      counts.max == 0 ? nullptr : builder.convert_if_any(items, place + "/items", depth + 1);
  if (more == nullptr) counts.max = 0;
  if (more == nullptr && counts.min > 0) {
    throw NothingFits(place, "minItems asks for more than items allows");
  }
  JsonRules& rules = builder.rules();
  return rules.add(place, rules.list(first, more, counts.min, counts.max));
}

}  // namespace rbee::grammar
