#pragma once
// JSON in its sent form.

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace rbee::server {

// On one line. U+FFFD replaces bytes that are not UTF-8.
inline std::string dump(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// As the client wrote it, because the client gets it back: 0.7, not 0.699999988.
inline double decimal(float value) {
  char text[32];
  const auto* const end = std::to_chars(text, text + sizeof text, value).ptr;
  double out = 0;
  std::from_chars(text, end, out);
  return out;
}

// To microseconds: further digits of a time in milliseconds mean nothing.
inline double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

// Whether steps are captured and replayed, in vLLM's words for CUDA graphs; refusal: why not.
inline nlohmann::ordered_json graphs(const std::string& refusal) {
  nlohmann::ordered_json out = {{"captured", refusal.empty()}};
  if (!refusal.empty()) out["reason"] = refusal;
  return out;
}

}  // namespace rbee::server
