// Filters that pick, map, sort or group the items of a sequence.

#include <algorithm>
#include <array>
#include <set>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"

namespace rbee::text::jinja {
namespace {

constexpr int64_t kSetNodeBytes = 64;

Args rest_of(const Args& args, size_t used) {
  Args rest;
  const auto skip = static_cast<std::ptrdiff_t>(std::min(used, args.positional.size()));
  rest.positional.assign(args.positional.begin() + skip, args.positional.end());
  rest.named = args.named;
  return rest;
}

std::string_view native_name(const Value& value, std::string_view what) {
  if (!value.is(Kind::text)) raise("the name of a ", what, " must be a string");
  return value.text().bytes;
}

Value map_attribute(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("map", args, {"attribute", "default"});
  std::vector<Value> out;
  for (const Value& item : items_of(runtime, self)) {
    Value value = follow_path(runtime, item, *given[0]);
    if (value.is(Kind::undefined) && !given.is_none(1)) value = *given[1];
    out.push_back(value);
  }
  return runtime.generator(std::move(out));
}

Value map(Runtime& runtime, const Value& self, const Args& args) {
  if (!truth(self)) return runtime.generator({});
  const bool by_attribute = std::any_of(args.named.begin(), args.named.end(),
                                        [](const auto& arg) { return arg.first == "attribute"; });
  if (args.positional.empty() && by_attribute) return map_attribute(runtime, self, args);
  if (args.positional.empty()) raise("map requires a filter argument");
  const std::string_view name = native_name(args.positional[0], "filter");
  const Native filter = find_filter(name);
  if (filter == nullptr) raise("no filter named '", name, "'");
  const Args rest = rest_of(args, 1);
  std::vector<Value> out;
  const Depth depth(runtime);
  for (const Value& item : items_of(runtime, self)) out.push_back(filter(runtime, item, rest));
  return runtime.generator(std::move(out));
}

// select, reject, selectattr and rejectattr.
Value choose(Runtime& runtime, const Value& self, const Args& args, bool keep, bool by_attribute) {
  if (!truth(self)) return runtime.generator({});
  const size_t used = by_attribute ? 1 : 0;
  if (args.positional.size() < used) raise("missing parameter for attribute name");
  Native test = nullptr;
  if (args.positional.size() > used) {
    const std::string_view name = native_name(args.positional[used], "test");
    test = find_test(name);
    if (test == nullptr) raise("no test named '", name, "'");
  }
  const Args rest = rest_of(args, used + 1);
  std::vector<Value> out;
  const Depth depth(runtime);
  for (const Value& item : items_of(runtime, self)) {
    const Value value = by_attribute ? follow_path(runtime, item, args.positional[0]) : item;
    const bool passes = truth(test != nullptr ? test(runtime, value, rest) : value);
    if (passes == keep) out.push_back(item);
  }
  return runtime.generator(std::move(out));
}

Value select(Runtime& runtime, const Value& self, const Args& args) {
  return choose(runtime, self, args, true, false);
}

Value reject(Runtime& runtime, const Value& self, const Args& args) {
  return choose(runtime, self, args, false, false);
}

Value selectattr(Runtime& runtime, const Value& self, const Args& args) {
  return choose(runtime, self, args, true, true);
}

Value rejectattr(Runtime& runtime, const Value& self, const Args& args) {
  return choose(runtime, self, args, false, true);
}

// An item and its sort key.
struct Keyed {
  std::vector<Value> keys;
  Value item;
};

// Python compares lists of keys: the first that differ decide.
bool keys_less(Runtime& runtime, const std::vector<Value>& a, const std::vector<Value>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(runtime, a[i], b[i])) return less(runtime, a[i], b[i]);
  }
  return false;
}

std::vector<Value> paths_of(Runtime& runtime, const Value& attribute) {
  if (!attribute.is(Kind::text)) return {attribute};
  std::vector<Value> paths;
  std::string_view rest = attribute.text().bytes;
  while (true) {
    const size_t comma = rest.find(',');
    paths.push_back(runtime.text(rest.substr(0, comma)));
    if (comma == std::string_view::npos) return paths;
    rest = rest.substr(comma + 1);
  }
}

Value sort(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("sort", args, {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = given.flag(1, false);
  const std::vector<Value> paths = paths_of(runtime, given.value_or(2, Value()));
  std::vector<Keyed> items;
  for (const Value& item : items_of(runtime, self)) {
    Keyed& entry = items.emplace_back(Keyed{{}, item});
    for (const Value& path : paths) {
      const Value key = follow_path(runtime, item, path);
      entry.keys.push_back(case_sensitive ? key : ignore_case(runtime, key));
    }
  }
  const bool reverse = given.flag(0, false);
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? keys_less(runtime, b.keys, a.keys) : keys_less(runtime, a.keys, b.keys);
  });
  std::vector<Value> out;
  for (const Keyed& entry : items) out.push_back(entry.item);
  return runtime.list(std::move(out));
}

Value dictsort(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("dictsort", args, {"case_sensitive", "by", "reverse"});
  const std::string_view by = given.text(1, "key");
  if (by != "key" && by != "value") raise("dictsort can sort by 'key' or 'value' only");
  if (self.is(Kind::undefined)) raise_undefined(self);
  if (!self.is(Kind::dict)) raise("dictsort needs a mapping, got ", type_name(self));
  std::vector<std::pair<Value, Value>> items;  // key, pair
  for (const auto& [name, value] : self.dict().entries) {
    const Value key = by == "key" ? name : value;
    items.emplace_back(given.flag(0, false) ? key : ignore_case(runtime, key),
                       runtime.tuple({name, value}));
  }
  const bool reverse = given.flag(2, false);
  std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(runtime, b.first, a.first) : less(runtime, a.first, b.first);
  });
  std::vector<Value> out;
  for (const auto& entry : items) out.push_back(entry.second);
  return runtime.list(std::move(out));
}

Value unique(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("unique", args, {"case_sensitive", "attribute"});
  std::set<Value, KeyLess> seen;
  std::vector<Value> out;
  for (const Value& item : items_of(runtime, self)) {
    Value key = follow_path(runtime, item, given.value_or(1, Value()));
    if (!given.flag(0, false)) key = ignore_case(runtime, key);
    require_hashable(key);
    if (key.is(Kind::text)) runtime.step_bytes(key.text().bytes.size());
    if (!seen.insert(key).second) continue;
    runtime.heap().charge(kSetNodeBytes);
    out.push_back(item);
  }
  return runtime.generator(std::move(out));
}

Value extreme(Runtime& runtime, const Value& self, const Args& args, bool want_less) {
  const Bound given(want_less ? "min" : "max", args, {"case_sensitive", "attribute"});
  const std::vector<Value> items = items_of(runtime, self);
  if (items.empty()) return runtime.undefined("no aggregated item, the sequence was empty");
  const auto key_of = [&](const Value& item) {
    const Value key = follow_path(runtime, item, given.value_or(1, Value()));
    return given.flag(0, false) ? key : ignore_case(runtime, key);
  };
  Value best = items[0];
  Value best_key = key_of(best);
  for (size_t i = 1; i < items.size(); ++i) {
    const Value key = key_of(items[i]);
    const bool better = want_less ? less(runtime, key, best_key) : less(runtime, best_key, key);
    if (!better) continue;
    best = items[i];
    best_key = key;
  }
  return best;
}

Value min(Runtime& runtime, const Value& self, const Args& args) {
  return extreme(runtime, self, args, true);
}

Value max(Runtime& runtime, const Value& self, const Args& args) {
  return extreme(runtime, self, args, false);
}

Value groupby(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const auto key_of = [&](const Value& item) {
    const Value key = follow_path(runtime, item, *given[0]);
    return key.is(Kind::undefined) && !given.is_none(1) ? *given[1] : key;
  };
  std::vector<std::pair<Value, Value>> items;  // key, item
  for (const Value& item : items_of(runtime, self)) {
    const Value key = key_of(item);
    items.emplace_back(given.flag(2, false) ? key : ignore_case(runtime, key), item);
  }
  std::stable_sort(items.begin(), items.end(),
                   [&](const auto& a, const auto& b) { return less(runtime, a.first, b.first); });
  std::vector<Value> groups;
  for (size_t i = 0; i < items.size();) {
    const size_t first = i;
    std::vector<Value> members;
    while (i < items.size() && equal(runtime, items[i].first, items[first].first)) {
      members.push_back(items[i++].second);
    }
    if (i == first) ++i;  // NaN equals nothing, not even itself
    const Value group =
        runtime.tuple({key_of(items[first].second), runtime.list(std::move(members))});
    group.sequence().is_group = true;
    groups.push_back(group);
  }
  return runtime.list(std::move(groups));
}

constexpr std::array<NamedNative, 11> kFilters = {{
    {"map", map},
    {"select", select},
    {"reject", reject},
    {"selectattr", selectattr},
    {"rejectattr", rejectattr},
    {"sort", sort},
    {"dictsort", dictsort},
    {"unique", unique},
    {"min", min},
    {"max", max},
    {"groupby", groupby},
}};

}  // namespace

std::span<const NamedNative> selection_filters() {
  return kFilters;
}

}  // namespace rbee::text::jinja
