// Filters on whole sequences and on values of any kind.

#include <algorithm>
#include <array>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

Value default_value(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("default", args, {"default_value", "boolean"});
  const bool missing = self.is(Kind::undefined) || (given.flag(1, false) && !truth(self));
  if (!missing) return self;
  return given.has(0) ? *given[0] : runtime.text("");
}

Value length(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const Bound given("length", args, {});
  return Value(size_of(self));
}

Value first(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("first", args, {});
  const std::vector<Value> items = items_of(runtime, self);
  return items.empty() ? runtime.undefined("no first item, the sequence was empty") : items[0];
}

bool reversible(const Value& value) {
  return is_iterable(value) && !(value.is(Kind::sequence) && !value.sequence().has_length());
}

Value last(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("last", args, {});
  if (!reversible(self)) raise("'", type_name(self), "' object is not reversible");
  const std::vector<Value> items = items_of(runtime, self);
  return items.empty() ? runtime.undefined("no last item, the sequence was empty") : items.back();
}

Value reverse(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("reverse", args, {});
  std::vector<Value> items = items_of(runtime, self);
  std::reverse(items.begin(), items.end());
  if (self.is(Kind::text)) {
    std::string out;
    for (const Value& item : items) out += item.text().bytes;
    return runtime.text(std::move(out), self.text().safe);
  }
  return reversible(self) ? runtime.generator(std::move(items)) : runtime.list(std::move(items));
}

Value list(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("list", args, {});
  return runtime.list(items_of(runtime, self));
}

Value items(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("items", args, {});
  if (self.is(Kind::undefined)) return runtime.generator({});
  if (!self.is(Kind::dict)) raise("can only get item pairs from a mapping");
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict().entries) out.push_back(runtime.tuple({key, value}));
  return runtime.generator(std::move(out));
}

Value join(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("join", args, {"d", "attribute"});
  std::string storage;
  const std::string_view separator =
      given.has(0) ? text_of(runtime, *given[0], storage) : std::string_view();
  std::string out;
  bool is_first = true;
  for (const Value& item : items_of(runtime, self)) {
    runtime.step_bytes(separator.size());
    if (!is_first) out += separator;
    is_first = false;
    append_text(runtime, out, follow_path(runtime, item, given.value_or(1, Value())));
    runtime.heap().require(static_cast<int64_t>(out.size()));
  }
  return runtime.text(std::move(out));
}

Value sum(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("sum", args, {"attribute", "start"});
  Value total = given.value_or(1, Value(int64_t{0}));
  if (total.is(Kind::text)) raise("sum() can't sum strings");
  for (const Value& item : items_of(runtime, self)) {
    const Value value = follow_path(runtime, item, given.value_or(0, Value()));
    total = binary(runtime, BinaryOp::add, total, value);
  }
  return total;
}

Value batch(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("batch", args, {"linecount", "fill_with"}, 1);
  const int64_t size = given.integer(0, 0);
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : items_of(runtime, self)) {
    if (static_cast<int64_t>(row.size()) == size) {
      rows.push_back(runtime.list(std::move(row)));
      row.clear();
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    const auto filled = static_cast<int64_t>(row.size());
    if (!given.is_none(1) && size > filled) {
      const int64_t missing = size - filled;
      runtime.step(missing);
      runtime.heap().require(missing * static_cast<int64_t>(sizeof(Value)));
      row.insert(row.end(), static_cast<size_t>(missing), *given[1]);
    }
    rows.push_back(runtime.list(std::move(row)));
  }
  return runtime.generator(std::move(rows));
}

Value slice_filter(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("slice", args, {"slices", "fill_with"}, 1);
  const int64_t slices = given.integer(0, 0);
  if (slices == 0) raise("division by zero");
  const std::vector<Value> items = items_of(runtime, self);
  const auto total = static_cast<int64_t>(items.size());
  std::vector<Value> rows;
  auto next = items.begin();
  for (int64_t i = 0; i < slices; ++i) {
    runtime.step();
    const bool is_larger = i < total % slices;
    const auto end = next + total / slices + (is_larger ? 1 : 0);
    std::vector<Value> row(next, end);
    if (!given.is_none(1) && !is_larger) row.push_back(*given[1]);
    rows.push_back(runtime.list(std::move(row)));
    next = end;
  }
  return runtime.generator(std::move(rows));
}

Value attr(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("attr", args, {"name"}, 1);
  const std::string_view name = given.text(0, "");
  if (self.is(Kind::undefined)) raise_undefined(self);
  // Unlike a.b this never reads a key.
  if (self.is(Kind::dict) && find_method(self, name) == nullptr) {
    return runtime.undefined(cat("'dict object' has no attribute '", name, "'"));
  }
  return attribute(runtime, self, name);
}

constexpr std::array<NamedNative, 15> kFilters = {{
    {"default", default_value},
    {"d", default_value},
    {"length", length},
    {"count", length},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"list", list},
    {"items", items},
    {"join", join},
    {"sum", sum},
    {"batch", batch},
    {"slice", slice_filter},
    {"attr", attr},
    {"tojson", filter_tojson},
}};

}  // namespace

std::span<const NamedNative> sequence_filters() {
  return kFilters;
}

}  // namespace rbee::text::jinja
