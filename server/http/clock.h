#pragma once
// Dates as HTTP and JSON write them; always UTC.

#include <chrono>
#include <string>

namespace rbee::server {

// RFC 9110 section 5.6.7, e.g. "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(std::chrono::system_clock::time_point time);
// ISO 8601 with milliseconds, e.g. "1994-11-06T08:49:37.000Z".
std::string iso8601(std::chrono::system_clock::time_point time);

}  // namespace rbee::server
