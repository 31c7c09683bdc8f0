#include "rbee/text/template/value.h"

#include <algorithm>
#include <cmath>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/integers.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

constexpr size_t kIndexedSize = 16;  // below it, a scan is faster than the index

// None, numbers, text, tuples and everything else (by address) sort apart.
int rank(const Value& value) {
  switch (value.kind()) {
    case Kind::none:
      return 0;
    case Kind::boolean:
    case Kind::integer:
    case Kind::wide:
    case Kind::floating:
      return 1;
    case Kind::text:
      return 2;
    case Kind::sequence:
      return value.sequence().form == Form::tuple ? 3 : 4;
    case Kind::undefined:
      return 5;  // all are equal
    case Kind::dict:
    case Kind::space:
    case Kind::custom:
      return 6;
  }
  return 6;
}

// NaN sorts first; integers compare exactly.
bool number_less(const Value& a, const Value& b) {
  if (const auto order = order_numbers(a, b)) return *order < 0;
  return std::isnan(a.number()) && !std::isnan(b.number());
}

const Object* address(const Value& value) {
  if (value.is(Kind::custom)) return &value.custom();
  if (value.is(Kind::space)) return &value.space();
  if (value.is(Kind::dict)) return &value.dict();
  if (value.is(Kind::undefined)) return &value.undefined();
  return &value.sequence();
}

// Tuples hold only hashable values here; their depth was checked by require_hashable.
bool tuple_less(const Sequence& a, const Sequence& b) {
  return std::lexicographical_compare(a.items.begin(), a.items.end(), b.items.begin(),
                                      b.items.end(), KeyLess{});
}

constexpr int kMaxKeyDepth = 16;

bool is_hashable_at(const Value& value, int depth) {
  if (value.is(Kind::dict)) return false;
  if (!value.is(Kind::sequence)) return true;
  const Sequence& sequence = value.sequence();
  if (sequence.form != Form::tuple) return sequence.form != Form::list;
  return depth < kMaxKeyDepth &&
         std::all_of(
             sequence.items.begin(), sequence.items.end(),
             [depth](const Value& item) { return is_hashable_at(item, depth + 1); });
}

}  // namespace

bool Value::same_as(const Value& other) const {
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::none:
      return true;
    case Kind::floating:
      return floating_ == other.floating_;
    case Kind::text:
      return text_ == other.text_ || text_->bytes == other.text_->bytes;
    case Kind::boolean:
    case Kind::integer:
      return integer_ == other.integer_;
    case Kind::wide:
      return wide_->decimal == other.wide_->decimal;
    default:
      return address(*this) == address(other);
  }
}

Text::Text(std::string utf8, bool is_safe)
    : bytes(std::move(utf8)), length(count_code_points(bytes)), safe(is_safe) {}

bool KeyLess::operator()(const Value& a, const Value& b) const {
  const int kind = rank(a);
  if (kind != rank(b)) return kind < rank(b);
  switch (kind) {
    case 0:
    case 5:
      return false;
    case 1:
      return number_less(a, b);
    case 2:
      return a.text().bytes < b.text().bytes;
    case 3:
      return tuple_less(a.sequence(), b.sequence());
    default:
      return std::less<>{}(address(a), address(b));
  }
}

const Value* Dict::at(std::optional<size_t> position) const {
  return position ? &entries[*position].second : nullptr;
}

std::optional<size_t> Dict::position_of(const Value& key) const {
  if (!index_.empty()) {
    const auto found = index_.find(key);
    if (found == index_.end()) return std::nullopt;
    return found->second;
  }
  const KeyLess less;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!less(key, entries[i].first) && !less(entries[i].first, key)) return i;
  }
  return std::nullopt;
}

const Value* Dict::find(const Value& key) const {
  require_hashable(key);
  return at(position_of(key));
}

const Value* Dict::find(std::string_view key) const {
  if (!index_.empty()) {
    const Text text{std::string(key)};
    return at(position_of(Value(&text)));
  }
  for (const auto& [name, value] : entries) {
    if (name.is(Kind::text) && name.text().bytes == key) return &value;
  }
  return nullptr;
}

void Dict::set(const Value& key, const Value& value) {
  require_hashable(key);
  if (const auto position = position_of(key)) {
    entries[*position].second = value;
    return;
  }
  entries.emplace_back(key, value);
  if (!index_.empty()) {
    index_.emplace(key, entries.size() - 1);
  } else if (entries.size() == kIndexedSize) {
    for (size_t i = 0; i < entries.size(); ++i) index_.emplace(entries[i].first, i);
  }
}

Value Custom::call(Runtime& /*runtime*/, const Args& /*args*/) {
  raise(describe(), " is not callable");
}

std::optional<Value> Custom::attribute(Runtime& /*runtime*/, std::string_view /*name*/) {
  return std::nullopt;
}

void Heap::require(int64_t bytes) const {
  if (bytes > max_bytes_ - used_) raise("the template needs more than ", max_bytes_, " bytes");
}

void Heap::charge(int64_t bytes) {
  require(bytes);
  used_ += bytes;
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
    case Kind::wide:
      return "int";
    case Kind::floating:
      return "float";
    case Kind::text:
      return value.text().safe ? "Markup" : "str";
    case Kind::dict:
      return "dict";
    case Kind::space:
      return "Namespace";
    case Kind::custom:
      return "function";
    case Kind::sequence:
      break;
  }
  switch (value.sequence().form) {
    case Form::list:
      return "list";
    case Form::tuple:
      return "tuple";
    case Form::generator:
      return "generator";
    case Form::range:
      return "range";
    case Form::keys:
      return "dict_keys";
    case Form::values:
      return "dict_values";
    case Form::items:
      return "dict_items";
  }
  return "object";
}

bool is_hashable(const Value& value) {
  return is_hashable_at(value, 0);
}

void require_hashable(const Value& value) {
  if (!is_hashable(value)) raise("unhashable type: '", type_name(value), "'");
}

}  // namespace rbee::text::jinja
