// Methods of dict, list and tuple. The sandbox is immutable: none of them changes its object.

#include <algorithm>
#include <array>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"

namespace rbee::text::jinja {
namespace {

Value items(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("items", args, {});
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict().entries) out.push_back(runtime.tuple({key, value}));
  return runtime.sequence(Form::items, std::move(out));
}

Value keys(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("keys", args, {});
  return runtime.sequence(Form::keys, items_of(runtime, self));
}

Value values(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("values", args, {});
  runtime.step(size_of(self));
  std::vector<Value> out;
  for (const auto& entry : self.dict().entries) out.push_back(entry.second);
  return runtime.sequence(Form::values, std::move(out));
}

Value get(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("get", args, {"key", "default"}, 1);
  const Value* found = runtime.find(self.dict(), *given[0]);
  return found != nullptr ? *found : given.value_or(1, Value());
}

// Nothing can change the object, so that it is its own copy.
Value copy(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const Bound given("copy", args, {});
  return self;
}

Value index(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("index", args, {"value", "start", "stop"}, 1);
  const std::vector<Value>& all = self.sequence().items;
  const auto size = static_cast<int64_t>(all.size());
  const auto bound = [&](size_t i, int64_t fallback) {
    const int64_t at = given.integer(i, fallback);
    return at < 0 ? std::max<int64_t>(0, at + size) : std::min(at, size);
  };
  const int64_t stop = bound(2, size);
  for (int64_t i = bound(1, 0); i < stop; ++i) {
    if (equal(runtime, all[static_cast<size_t>(i)], *given[0])) return Value(i);
  }
  raise("the value is not in the ", type_name(self));
}

Value count(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("count", args, {"value"}, 1);
  const std::vector<Value>& all = self.sequence().items;
  return Value(static_cast<int64_t>(std::count_if(
      all.begin(), all.end(), [&](const Value& item) { return equal(runtime, item, *given[0]); })));
}

constexpr std::array<NamedNative, 5> kDictMethods = {{
    {"items", items},
    {"keys", keys},
    {"values", values},
    {"get", get},
    {"copy", copy},
}};

constexpr std::array<NamedNative, 3> kListMethods = {{
    {"index", index},
    {"count", count},
    {"copy", copy},
}};

}  // namespace

std::span<const NamedNative> dict_methods() {
  return kDictMethods;
}

std::span<const NamedNative> list_methods() {
  return kListMethods;
}

}  // namespace rbee::text::jinja
