#pragma once
// JSON from files that nobody vouches for, bounded in size and depth. Includes nlohmann's large
// header: for .cc files only.

#include <nlohmann/json.hpp>
#include <string_view>

namespace rbee::io {

struct JsonLimits {
  size_t bytes = size_t{64} << 20;
  int depth = 64;
};

// Throws invalid_argument, naming `source`, on malformed text and on what exceeds the limits.
// Python's NaN, Infinity and -Infinity are null.
nlohmann::json parse_json(std::string_view text, std::string_view source,
                          const JsonLimits& limits = {});

}  // namespace rbee::io
