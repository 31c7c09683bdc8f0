#pragma once
// Sizes of memory in messages for people.

#include <charconv>
#include <cstdint>
#include <string>

#include "rbee/core/cat.h"

namespace rbee {

// "4.9 GB", of 1e9 bytes.
inline std::string gigabytes(int64_t bytes) {
  char text[32];
  const auto [end, error] = std::to_chars(
      text, text + sizeof text, static_cast<double>(bytes) / 1e9, std::chars_format::fixed, 1);
  return cat(std::string_view(text, end), " GB");
}

}  // namespace rbee
