#include "rbee/text/template/operators.h"

#include <algorithm>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/integers.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

bool same_form(const Sequence& a, const Sequence& b) {
  const bool data = a.form == Form::list || a.form == Form::tuple || a.form == Form::range;
  return data && a.form == b.form;
}

bool equal_dicts(Runtime& runtime, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = runtime.find(b, entry.first);
    return other != nullptr && equal(runtime, entry.second, *other);
  });
}

bool equal_sequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  return a.items.size() == b.items.size() &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(),
                    [&](const Value& x, const Value& y) { return equal(runtime, x, y); });
}

std::optional<int> order_sequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common; ++i) {
    if (!equal(runtime, a.items[i], b.items[i])) return order(runtime, a.items[i], b.items[i]);
  }
  return a.items.size() < b.items.size() ? -1 : a.items.size() > b.items.size() ? 1 : 0;
}

std::vector<Value> characters(Runtime& runtime, const Text& text) {
  runtime.step(text.length);
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(text.length));
  for (size_t i = 0; i < text.bytes.size();) {
    const size_t start = i;
    next_code_point(text.bytes, i);
    out.push_back(runtime.text(std::string_view(text.bytes).substr(start, i - start)));
  }
  return out;
}

}  // namespace

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.integer() != 0;
    case Kind::wide:
      return true;
    case Kind::floating:
      return value.floating() != 0;
    case Kind::text:
      return value.text().length > 0;
    case Kind::sequence:
      return !value.sequence().has_length() || !value.sequence().items.empty();
    case Kind::dict:
      return !value.dict().entries.empty();
    case Kind::space:
      return true;
    case Kind::custom:
      return value.custom().size().value_or(1) != 0;
  }
  return true;
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  const Depth depth(runtime);
  runtime.step();
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
      return true;
    case Kind::text:
      runtime.step_bytes(std::min(a.text().bytes.size(), b.text().bytes.size()));
      return a.text().bytes == b.text().bytes;
    case Kind::dict:
      return equal_dicts(runtime, a.dict(), b.dict());
    case Kind::sequence:
      if (same_form(a.sequence(), b.sequence())) {
        return equal_sequences(runtime, a.sequence(), b.sequence());
      }
      return a.same_as(b);
    default:
      return a.same_as(b);
  }
}

std::optional<int> order(Runtime& runtime, const Value& a, const Value& b) {
  const Depth depth(runtime);
  runtime.step();
  if (a.is_number() && b.is_number()) return order_numbers(a, b);
  if (a.is(Kind::text) && b.is(Kind::text)) {
    runtime.step_bytes(std::min(a.text().bytes.size(), b.text().bytes.size()));
    const int sign = a.text().bytes.compare(b.text().bytes);
    return sign < 0 ? -1 : sign > 0 ? 1 : 0;
  }
  const bool sequences = a.is(Kind::sequence) && b.is(Kind::sequence);
  if (sequences && a.sequence().form != Form::range && same_form(a.sequence(), b.sequence())) {
    return order_sequences(runtime, a.sequence(), b.sequence());
  }
  raise_operands("<", a, b);
}

bool less(Runtime& runtime, const Value& a, const Value& b) {
  return order(runtime, a, b) == -1;
}

bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::eq:
      return equal(runtime, a, b);
    case CompareOp::ne:
      return !equal(runtime, a, b);
    case CompareOp::in:
      return contains(runtime, b, a);
    case CompareOp::not_in:
      return !contains(runtime, b, a);
    default:
      break;
  }
  const std::optional<int> sign = order(runtime, a, b);
  if (!sign) return false;
  switch (op) {
    case CompareOp::lt:
      return *sign < 0;
    case CompareOp::le:
      return *sign <= 0;
    case CompareOp::gt:
      return *sign > 0;
    default:
      return *sign >= 0;
  }
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::undefined:
      return false;
    case Kind::text:
      if (!item.is(Kind::text)) {
        raise("'in <string>' requires string as left operand, not ", type_name(item));
      }
      runtime.step_bytes(container.text().bytes.size());
      return find_text(container.text().bytes, item.text().bytes) != std::string_view::npos;
    case Kind::dict:
      return runtime.find(container.dict(), item) != nullptr;
    case Kind::sequence: {
      const std::vector<Value> items = items_of(runtime, container);
      return std::any_of(items.begin(), items.end(),
                         [&](const Value& value) { return equal(runtime, value, item); });
    }
    default:
      raise("argument of type '", type_name(container), "' is not iterable");
  }
}

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::text:
    case Kind::sequence:
    case Kind::dict:
      return true;
    default:
      return false;
  }
}

std::vector<Value> items_of(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return {};
    case Kind::text:
      return characters(runtime, value.text());
    case Kind::dict: {
      runtime.step(static_cast<int64_t>(value.dict().entries.size()));
      std::vector<Value> keys;
      for (const auto& entry : value.dict().entries) keys.push_back(entry.first);
      return keys;
    }
    case Kind::sequence: {
      Sequence& sequence = value.sequence();
      runtime.step(static_cast<int64_t>(sequence.items.size()));
      if (sequence.form != Form::generator) return sequence.items;
      if (sequence.consumed) return {};
      sequence.consumed = true;
      return sequence.items;
    }
    default:
      raise("'", type_name(value), "' object is not iterable");
  }
}

int64_t size_of(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::text:
      return value.text().length;
    case Kind::dict:
      return static_cast<int64_t>(value.dict().entries.size());
    case Kind::sequence:
      if (!value.sequence().has_length()) break;
      return static_cast<int64_t>(value.sequence().items.size());
    case Kind::custom:
      if (const auto size = value.custom().size()) return *size;
      break;
    default:
      break;
  }
  raise("object of type '", type_name(value), "' has no len()");
}

Value call(Runtime& runtime, const Value& callee, const Args& args) {
  if (callee.is(Kind::undefined)) raise_undefined(callee);
  if (!callee.is(Kind::custom)) raise("'", type_name(callee), "' object is not callable");
  const Depth depth(runtime);
  return callee.custom().call(runtime, args);
}

void raise_undefined(const Value& value) {
  raise(value.undefined().message);
}

void raise_operands(std::string_view symbol, const Value& a, const Value& b) {
  if (a.is(Kind::undefined)) raise_undefined(a);
  if (b.is(Kind::undefined)) raise_undefined(b);
  raise("'", symbol, "' does not work between '", type_name(a), "' and '", type_name(b), "'");
}

}  // namespace rbee::text::jinja
