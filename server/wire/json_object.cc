#include "server/wire/json_object.h"

#include <cmath>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr size_t kMaxNoted = 32;  // a body may have one wrong entry for every two bytes

// 5.0 is an integer, as in JSON schemas.
bool is_whole(const json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
}

thread_local NamesRead* names_read = nullptr;

}  // namespace

bool is_utf8(const std::string& text) {
  try {
    (void)json(text).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

NamesRead::NamesRead() {
  names_read = this;
}

NamesRead::~NamesRead() {
  names_read = nullptr;
}

const json* ObjectReader::find(const char* name) const {
  if (names_read != nullptr) names_read->names_.insert(prefix_ + name);
  if (body_ != nullptr) body_->read(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ObjectReader::note(std::string_view name, std::string constraint, std::string_view message,
                        const json* value) {
  if (errors_.size() >= kMaxNoted) return;
  errors_.push_back({.field = cat(prefix_, name),
                     .constraint = std::move(constraint),
                     .message = cat(prefix_, name, " ", message),
                     .value = value != nullptr ? shown(*value) : std::string()});
}

std::optional<std::string> ObjectReader::text(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  note(name, "type(string)", "must be a string", value);
  return std::nullopt;
}

std::optional<bool> ObjectReader::boolean(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  note(name, "type(boolean)", "must be true or false", value);
  return std::nullopt;
}

std::optional<float> ObjectReader::number(const char* name, FieldRange<double> range) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string bounds = cat(range.open_low ? "above " : "from ", range.low,
                                 range.open_low ? " and at most " : " to ", range.high);
  if (!value->is_number()) {
    note(name, "type(number)", cat("must be a number ", bounds), value);
    return std::nullopt;
  }
  // Compares the float that will be used: as one, 1e-60 is not above 0.
  const auto number = static_cast<float>(value->get<double>());
  const bool high_enough = range.open_low ? number > range.low : number >= range.low;
  if (high_enough && number <= range.high) return number;
  note(name, cat("range(", range.low, range.open_low ? "<..=" : "..=", range.high, ")"),
       cat("must be ", bounds), value);
  return std::nullopt;
}

std::optional<int32_t> ObjectReader::integer(const char* name, FieldRange<int32_t> range) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string bounds = cat("from ", range.low, " to ", range.high);
  if (!is_whole(*value)) {
    note(name, "type(integer)", cat("must be an integer ", bounds), value);
    return std::nullopt;
  }
  // A double holds every 32-bit integer, and rounds no other integer to one.
  const auto number = value->get<double>();
  if (number >= range.low && number <= range.high) return static_cast<int32_t>(number);
  note(name, cat("range(", range.low, "..=", range.high, ")"), cat("must be ", bounds), value);
  return std::nullopt;
}

std::optional<uint64_t> ObjectReader::seed(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  if (is_whole(*value)) {
    const auto number = value->get<double>();
    if (number < 0) return std::nullopt;
    if (number < 0x1p64) return static_cast<uint64_t>(number);
  }
  note(name, "type(u64)", "must be an integer, at most 18446744073709551615", value);
  return std::nullopt;
}

}  // namespace rbee::server
