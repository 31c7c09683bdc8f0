#pragma once
// Parses JSON from untrusted files, bounded in size and depth. Includes nlohmann's large header:
// include it in .cc files only.

#include <nlohmann/json.hpp>
#include <string_view>

namespace rbee::io {

struct JsonLimits {
  size_t bytes = size_t{64} << 20;
  int depth = 64;
};

// Throws invalid_argument, naming `source`, if the text is malformed or exceeds the limits.
// Python's NaN, Infinity and -Infinity become texts, which no reader of numbers takes.
nlohmann::json parse_json(std::string_view text, std::string_view source,
                          const JsonLimits& limits = {});

}  // namespace rbee::io
