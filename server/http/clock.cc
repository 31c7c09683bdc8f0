#include "server/http/clock.h"

#include <time.h>

#include <array>
#include <cstdio>

namespace rbee::server {
namespace {

using std::chrono::system_clock;

tm utc(system_clock::time_point time) {
  const time_t seconds = system_clock::to_time_t(time);
  tm parts{};
  gmtime_r(&seconds, &parts);
  return parts;
}

}  // namespace

std::string http_date(system_clock::time_point time) {
  // strftime would use the locale's names.
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const tm parts = utc(time);
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<size_t>(parts.tm_wday)], parts.tm_mday,
                kMonths[static_cast<size_t>(parts.tm_mon)], parts.tm_year + 1900, parts.tm_hour,
                parts.tm_min, parts.tm_sec);
  return text;
}

std::string iso8601(system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time - whole).count();
  const tm parts = utc(whole);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>(ms));
  return text;
}

}  // namespace rbee::server
