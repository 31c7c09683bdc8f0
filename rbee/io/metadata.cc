#include "rbee/io/metadata.h"

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::io {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are read as they lie in the file");

struct TypeInfo {
  std::string_view name;
  size_t size;
};

constexpr std::array<TypeInfo, kMetaTypeCount> kTypes = {{
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
}};

constexpr size_t kArrayHeader = sizeof(uint32_t) + sizeof(uint64_t);

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Calls `use` with the number at `at`; false when the type is no number.
template <typename Use>
bool with_number(MetaType type, const std::byte* at, Use use) {
  switch (type) {
    case MetaType::u8:
      return use(load<uint8_t>(at)), true;
    case MetaType::i8:
      return use(load<int8_t>(at)), true;
    case MetaType::u16:
      return use(load<uint16_t>(at)), true;
    case MetaType::i16:
      return use(load<int16_t>(at)), true;
    case MetaType::u32:
      return use(load<uint32_t>(at)), true;
    case MetaType::i32:
      return use(load<int32_t>(at)), true;
    case MetaType::u64:
      return use(load<uint64_t>(at)), true;
    case MetaType::i64:
      return use(load<int64_t>(at)), true;
    case MetaType::f32:
      return use(load<float>(at)), true;
    case MetaType::f64:
      return use(load<double>(at)), true;
    case MetaType::boolean:
    case MetaType::string:
    case MetaType::array:
      return false;
  }
  return false;
}

// The integer at `at` when it fits T.
template <typename T>
std::optional<T> integer_at(MetaType type, const std::byte* at) {
  std::optional<T> out;
  if (!is_integer(type)) return out;
  with_number(type, at, [&](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) {
      if (std::in_range<T>(value)) out = static_cast<T>(value);
    }
  });
  return out;
}

std::string_view string_at(const std::byte* at) {
  return {reinterpret_cast<const char*>(at + sizeof(uint64_t)), load<uint64_t>(at)};
}

}  // namespace

std::string_view name(MetaType type) {
  return kTypes[static_cast<size_t>(type)].name;
}

size_t size_of(MetaType type) {
  return kTypes[static_cast<size_t>(type)].size;
}

bool is_integer(MetaType type) {
  switch (type) {
    case MetaType::u8:
    case MetaType::i8:
    case MetaType::u16:
    case MetaType::i16:
    case MetaType::u32:
    case MetaType::i32:
    case MetaType::u64:
    case MetaType::i64:
      return true;
    default:
      return false;
  }
}

std::span<const std::byte> MetaEntry::items() const {
  return type == MetaType::array ? value.subspan(kArrayHeader) : value;
}

std::string MetaEntry::describe_type() const {
  if (type != MetaType::array) return std::string(name(type));
  return cat("an array of ", count, " ", name(element));
}

Metadata::Metadata(std::string source, std::shared_ptr<const void> owner,
                   std::vector<MetaEntry> entries)
    : source_(std::move(source)), owner_(std::move(owner)), entries_(std::move(entries)) {
  index_.reserve(entries_.size());
  for (const MetaEntry& entry : entries_) {
    check(index_.emplace(entry.key, index_.size()).second, source_, "the key ", entry.key,
          " comes twice");
  }
}

const MetaEntry* Metadata::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

void Metadata::fail_type(const MetaEntry& entry, std::string_view wanted) const {
  fail(Code::invalid_argument, source_, "the key ", entry.key, " is ", entry.describe_type(),
       ", wanted ", wanted);
}

void Metadata::fail_missing(std::string_view key) const {
  fail(Code::not_found, source_, "the key ", key, " is missing");
}

const MetaEntry* Metadata::find_array(std::string_view key, std::string_view wanted) const {
  const MetaEntry* entry = find(key);
  if (entry != nullptr && entry->type != MetaType::array) fail_type(*entry, wanted);
  return entry;
}

std::optional<uint64_t> Metadata::get_u64(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  const auto value = integer_at<uint64_t>(entry->type, entry->value.data());
  if (!value) fail_type(*entry, "an integer of at least 0");
  return value;
}

std::optional<int64_t> Metadata::get_i64(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  const auto value = integer_at<int64_t>(entry->type, entry->value.data());
  if (!value) fail_type(*entry, "an integer below 2^63");
  return value;
}

std::optional<double> Metadata::get_f64(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  double out = 0;
  const auto set = [&](auto value) { out = static_cast<double>(value); };
  if (!with_number(entry->type, entry->value.data(), set)) fail_type(*entry, "a number");
  return out;
}

std::optional<bool> Metadata::get_bool(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->type != MetaType::boolean) fail_type(*entry, "bool");
  return entry->value[0] != std::byte{0};
}

std::optional<std::string_view> Metadata::get_string(std::string_view key) const {
  const MetaEntry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->type != MetaType::string) fail_type(*entry, "string");
  return string_at(entry->value.data());
}

std::optional<std::vector<std::string_view>> Metadata::get_strings(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of string";
  const MetaEntry* entry = find_array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  if (entry->element != MetaType::string) fail_type(*entry, kWanted);
  std::vector<std::string_view> out;
  out.reserve(entry->count);
  const std::byte* at = entry->items().data();
  for (uint64_t i = 0; i < entry->count; ++i) {
    out.push_back(string_at(at));
    at += sizeof(uint64_t) + out.back().size();
  }
  return out;
}

std::optional<std::vector<float>> Metadata::get_floats(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of numbers";
  const MetaEntry* entry = find_array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  std::vector<float> out;
  if (size_of(entry->element) == 0 || entry->element == MetaType::boolean) {
    fail_type(*entry, kWanted);
  }
  out.reserve(entry->count);
  const std::byte* at = entry->items().data();
  for (uint64_t i = 0; i < entry->count; ++i, at += size_of(entry->element)) {
    with_number(entry->element, at, [&](auto value) { out.push_back(static_cast<float>(value)); });
  }
  return out;
}

std::optional<std::vector<int64_t>> Metadata::get_ints(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of integers below 2^63";
  const MetaEntry* entry = find_array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  if (!is_integer(entry->element)) fail_type(*entry, kWanted);
  std::vector<int64_t> out;
  out.reserve(entry->count);
  const std::byte* at = entry->items().data();
  for (uint64_t i = 0; i < entry->count; ++i, at += size_of(entry->element)) {
    const auto value = integer_at<int64_t>(entry->element, at);
    if (!value) fail_type(*entry, kWanted);
    out.push_back(*value);
  }
  return out;
}

std::optional<std::vector<bool>> Metadata::get_bools(std::string_view key) const {
  constexpr std::string_view kWanted = "an array of bool";
  const MetaEntry* entry = find_array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  if (entry->element != MetaType::boolean) fail_type(*entry, kWanted);
  std::vector<bool> out;
  out.reserve(entry->count);
  for (const std::byte item : entry->items()) out.push_back(item != std::byte{0});
  return out;
}

uint64_t Metadata::require_u64(std::string_view key) const {
  if (const auto value = get_u64(key)) return *value;
  fail_missing(key);
}

int64_t Metadata::require_i64(std::string_view key) const {
  if (const auto value = get_i64(key)) return *value;
  fail_missing(key);
}

double Metadata::require_f64(std::string_view key) const {
  if (const auto value = get_f64(key)) return *value;
  fail_missing(key);
}

bool Metadata::require_bool(std::string_view key) const {
  if (const auto value = get_bool(key)) return *value;
  fail_missing(key);
}

std::string_view Metadata::require_string(std::string_view key) const {
  if (const auto value = get_string(key)) return *value;
  fail_missing(key);
}

std::vector<std::string_view> Metadata::require_strings(std::string_view key) const {
  if (auto value = get_strings(key)) return std::move(*value);
  fail_missing(key);
}

std::vector<float> Metadata::require_floats(std::string_view key) const {
  if (auto value = get_floats(key)) return std::move(*value);
  fail_missing(key);
}

std::vector<int64_t> Metadata::require_ints(std::string_view key) const {
  if (auto value = get_ints(key)) return std::move(*value);
  fail_missing(key);
}

}  // namespace rbee::io
