#pragma once
// Bytes as text.

#include <span>
#include <string>

namespace rbee {

// Two lower-case hexadecimal digits for each byte.
inline std::string hex(std::span<const unsigned char> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) out += {kDigits[byte >> 4], kDigits[byte & 15]};
  return out;
}

}  // namespace rbee
