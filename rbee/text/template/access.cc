// Attributes, items and slices of values.

#include <algorithm>
#include <array>
#include <limits>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

std::string object_name(const Value& value) {
  return value.is(Kind::none) ? "None" : cat(type_name(value), " object");
}

Value missing(Runtime& runtime, const Value& object, const Value& key) {
  if (key.is(Kind::text)) {
    return runtime.undefined(
        cat("'", object_name(object), "' has no attribute '", key.text().bytes, "'"));
  }
  std::string text;
  append_repr(runtime, text, key);
  return runtime.undefined(cat(object_name(object), " has no element ", text));
}

// The sandbox hides methods that would change a list or a dict.
bool changes(const Value& object, std::string_view name) {
  constexpr std::array<std::string_view, 8> kList = {"append", "clear",  "extend",  "insert",
                                                     "pop",    "remove", "reverse", "sort"};
  constexpr std::array<std::string_view, 5> kDict = {"clear", "pop", "popitem", "setdefault",
                                                     "update"};
  const auto in = [name](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (object.is(Kind::dict)) return in(kDict);
  return object.is(Kind::sequence) && object.sequence().form == Form::list && in(kList);
}

// The attributes that Python's getattr finds.
std::optional<Value> own_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is(Kind::custom)) return object.custom().attribute(runtime, name);
  if (object.is(Kind::space)) {
    const Value* found = object.space().attributes.find(name);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  if (changes(object, name)) {
    return runtime.undefined(
        cat("access to attribute '", name, "' of '", type_name(object), "' object is unsafe"));
  }
  if (object.is(Kind::sequence) && object.sequence().is_group) {
    if (name == "grouper") return object.sequence().items[0];
    if (name == "list") return object.sequence().items[1];
  }
  if (const Native method = find_method(object, name)) {
    return make_function(runtime, name, method, object);
  }
  return std::nullopt;
}

std::optional<size_t> position(int64_t index, int64_t size) {
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  return static_cast<size_t>(index);
}

Value character(Runtime& runtime, const Text& text, size_t index) {
  size_t begin = index;
  if (!text.ascii()) {
    runtime.step_bytes(text.bytes.size());
    begin = byte_offset(text.bytes, static_cast<int64_t>(index));
  }
  size_t end = begin;
  next_code_point(text.bytes, end);
  return runtime.text(text.bytes.substr(begin, end - begin), text.safe);
}

std::optional<Value> item(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is(Kind::dict)) {
    if (!is_hashable(key)) return std::nullopt;
    const Value* found = runtime.find(object.dict(), key);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  if (!key.is_integral()) return std::nullopt;
  if (object.is(Kind::text)) {
    const auto index = position(key.integer(), object.text().length);
    return index ? std::optional(character(runtime, object.text(), *index)) : std::nullopt;
  }
  if (object.is(Kind::sequence) && object.sequence().has_subscript()) {
    const std::vector<Value>& items = object.sequence().items;
    const auto index = position(key.integer(), static_cast<int64_t>(items.size()));
    return index ? std::optional(items[*index]) : std::nullopt;
  }
  return std::nullopt;
}

// Python's slice.indices(): the start, the step, and the number of items.
struct Window {
  int64_t start;
  int64_t step;
  int64_t count;
};

constexpr int64_t kFarIndex = int64_t{1} << 62;  // past every end

int64_t slice_integer(const Value& value, int64_t fallback) {
  if (value.is(Kind::none)) return fallback;
  if (value.is(Kind::wide)) return value.number() < 0 ? -kFarIndex : kFarIndex;
  if (!value.is_integral()) raise("slice indices must be integers or None");
  return value.integer();
}

Window window(int64_t size, const Value& start, const Value& stop, const Value& step) {
  // Steps beyond the size behave alike; the bounds keep sums from overflowing.
  const int64_t by =
      std::clamp<int64_t>(slice_integer(step, 1), -(int64_t{1} << 40), int64_t{1} << 40);
  if (by == 0) raise("slice step cannot be zero");
  const int64_t low = by > 0 ? 0 : -1;
  const int64_t high = by > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, int64_t fallback) {
    if (value.is(Kind::none)) return fallback;
    int64_t index = slice_integer(value, 0);
    if (index < 0) index += size;
    return std::clamp(index, low, high);
  };
  const int64_t from = bound(start, by > 0 ? low : high);
  const int64_t to = bound(stop, by > 0 ? high : low);
  const int64_t span = by > 0 ? to - from : from - to;
  const int64_t pace = by > 0 ? by : -by;
  return {from, by, span > 0 ? (span + pace - 1) / pace : 0};
}

Value slice_text(Runtime& runtime, const Text& text, const Window& part) {
  runtime.step_bytes(text.bytes.size());
  if (part.step == 1) {
    const size_t begin = byte_offset(text.bytes, part.start);
    const std::string_view rest = std::string_view(text.bytes).substr(begin);
    return runtime.text(std::string(rest.substr(0, byte_offset(rest, part.count))), text.safe);
  }
  std::u32string all;
  for (size_t i = 0; i < text.bytes.size();) all.push_back(next_code_point(text.bytes, i));
  std::string out;
  for (int64_t i = 0; i < part.count; ++i) {
    append_utf8(out, all[static_cast<size_t>(part.start + i * part.step)]);
  }
  return runtime.text(std::move(out), text.safe);
}

Value slice_sequence(Runtime& runtime, const Sequence& sequence, const Window& part) {
  runtime.step(part.count);
  std::vector<Value> out;
  for (int64_t i = 0; i < part.count; ++i) {
    out.push_back(sequence.items[static_cast<size_t>(part.start + i * part.step)]);
  }
  if (sequence.form != Form::range) return runtime.sequence(sequence.form, std::move(out));
  const auto& range = static_cast<const Range&>(sequence);
  // Bounds far outside of 64 bits wrap; they only show in the range's repr.
  const auto wrap = [](int64_t offset, int64_t count, int64_t factor) {
    const uint64_t sum = static_cast<uint64_t>(offset) +
                         static_cast<uint64_t>(count) * static_cast<uint64_t>(factor);
    return static_cast<int64_t>(sum);
  };
  const int64_t start = wrap(range.start, part.start, range.step);
  const int64_t step = wrap(0, part.step, range.step);
  const auto payload = static_cast<int64_t>(out.size() * sizeof(Value));
  return Value(runtime.heap().make<Range>(payload, start, wrap(start, part.count, step), step,
                                          std::move(out)));
}

}  // namespace

Value attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is(Kind::undefined)) raise_undefined(object);
  if (const auto found = own_attribute(runtime, object, name)) return *found;
  if (object.is(Kind::dict)) {
    if (const Value* found = object.dict().find(name)) return *found;
  }
  return runtime.undefined(cat("'", object_name(object), "' has no attribute '", name, "'"));
}

Value subscript(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is(Kind::undefined)) raise_undefined(object);
  if (const auto found = item(runtime, object, key)) return *found;
  if (key.is(Kind::text)) {
    if (const auto found = own_attribute(runtime, object, key.text().bytes)) return *found;
  }
  return missing(runtime, object, key);
}

Value slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
            const Value& step) {
  if (object.is(Kind::undefined)) raise_undefined(object);
  if (object.is(Kind::text)) {
    const Text& text = object.text();
    return slice_text(runtime, text, window(text.length, start, stop, step));
  }
  if (!object.is(Kind::sequence) || !object.sequence().has_subscript()) {
    raise("'", type_name(object), "' object cannot be sliced");
  }
  const Sequence& sequence = object.sequence();
  const auto size = static_cast<int64_t>(sequence.items.size());
  return slice_sequence(runtime, sequence, window(size, start, stop, step));
}

}  // namespace rbee::text::jinja
