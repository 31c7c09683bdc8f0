#include "server/wire/lax_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace rbee::server {
namespace {

using nlohmann::json;

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlanks = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The whole of `text` as a number in Python's notation; null if it is not one.
json number_in(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+') && !text.substr(1).starts_with('-')) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto read = [&](auto number) {
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    return error == std::errc{} && stop == end ? json(number) : json();
  };
  for (const json& whole : {read(int64_t{0}), read(uint64_t{0})}) {
    if (!whole.is_null()) return whole;
  }
  const json number = read(double{0});
  return !number.is_null() && std::isfinite(number.get<double>()) ? number : json();
}

json truth_in(const json& value) {
  if (value.is_number()) return value == 0 || value == 1 ? json(value == 1) : json();
  constexpr std::string_view kYes[] = {"1", "on", "t", "true", "y", "yes"};
  constexpr std::string_view kNo[] = {"0", "off", "f", "false", "n", "no"};
  std::string word = value.get<std::string>();
  std::ranges::transform(word, word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (std::ranges::find(kYes, word) != std::end(kYes)) return true;
  return std::ranges::find(kNo, word) != std::end(kNo) ? json(false) : json();
}

json meant(const json& value, LaxKind kind) {
  if (kind == LaxKind::truth) {
    return value.is_string() || value.is_number() ? truth_in(value) : json();
  }
  return value.is_string() ? number_in(value.get_ref<const std::string&>()) : json();
}

void put_meant(json& value, LaxKind kind) {
  if (json sense = meant(value, kind); !sense.is_null()) value = std::move(sense);
}

}  // namespace

void read_laxly(JsonBody& body, std::span<const LaxField> fields) {
  for (const LaxField& field : fields) {
    const std::string name(field.name);
    if (body.has(name)) put_meant(body[name], field.kind);
  }
}

void read_laxly(json& object, std::span<const LaxField> fields) {
  for (const LaxField& field : fields) {
    if (const auto at = object.find(field.name); at != object.end()) put_meant(*at, field.kind);
  }
}

}  // namespace rbee::server
