#pragma once
// JSON as it is sent.

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace rbee::server {

// In one line. Bytes that are no UTF-8 become U+FFFD.
inline std::string dump(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// As the client wrote it, who gets it back: 0.7, not 0.699999988.
inline double decimal(float value) {
  char text[32];
  const auto* const end = std::to_chars(text, text + sizeof text, value).ptr;
  double out = 0;
  std::from_chars(text, end, out);
  return out;
}

// Microseconds are as far as a clock reading in milliseconds means anything.
inline double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

// Whether steps are captured and replayed, as vLLM says it of CUDA graphs; refusal: why not.
inline nlohmann::ordered_json graphs(const std::string& refusal) {
  nlohmann::ordered_json out = {{"captured", refusal.empty()}};
  if (!refusal.empty()) out["reason"] = refusal;
  return out;
}

}  // namespace rbee::server
