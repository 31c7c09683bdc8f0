#include "server/front/keep_alive.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace rbee::server {
namespace {

constexpr double kMostSeconds = 1e9;         // some thirty years
constexpr double kGoResolution = 0.9999e-9;  // Go counts whole nanoseconds

// Seconds of a unit; 0: there is no such unit.
double seconds_of(std::string_view unit) {
  if (unit == "ns") return 1e-9;
  if (unit == "us" || unit == "\u00b5s" || unit == "\u03bcs") return 1e-6;
  if (unit == "ms") return 1e-3;
  if (unit == "s") return 1;
  if (unit == "m") return 60;
  return unit == "h" ? 3600 : 0;
}

// Takes a number without a sign from the front of the text.
std::optional<double> take_number(std::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  double out = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + end, out);
  if (error != std::errc() || at != text.data() + end) return std::nullopt;
  text.remove_prefix(end);
  return out;
}

}  // namespace

// Only 0 unloads a model after its request, so that a shorter duration than ours is rounded up.
std::chrono::milliseconds keep_alive_of(double seconds) {
  if (!(seconds >= 0) || seconds > kMostSeconds) return kForEver;
  const std::chrono::milliseconds rounded(std::llround(seconds * 1000));
  return seconds < kGoResolution ? std::chrono::milliseconds(0)
                                 : std::max(rounded, std::chrono::milliseconds(1));
}

std::optional<std::chrono::milliseconds> parse_keep_alive(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  for (bool first = true; !text.empty(); first = false) {
    const std::optional<double> number = take_number(text);
    if (!number) return std::nullopt;
    const size_t end = std::min(text.find_first_of("0123456789."), text.size());
    const bool alone = first && text.empty();
    const double unit = alone ? 1 : seconds_of(text.substr(0, end));
    if (unit == 0) return std::nullopt;
    seconds += *number * unit;
    text.remove_prefix(end);
  }
  return negative && seconds >= kGoResolution ? kForEver : keep_alive_of(seconds);
}

}  // namespace rbee::server
