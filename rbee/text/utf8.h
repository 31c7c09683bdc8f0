#pragma once
// UTF-8, as Unicode 15.0 section 3.9 defines it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rbee::text {

inline constexpr char32_t kReplacement = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

// Length of the character whose first byte is `lead`, for valid text.
inline size_t utf8_length(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The character that starts at text[at]. `text` must be valid, and `at` must be the start of a
// character in it.
inline char32_t utf8_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return lead;
  if (lead < 0xE0) return (lead & 0x1F) << 6 | (byte(1) & 0x3Fu);
  if (lead < 0xF0) return (lead & 0x0F) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
  return (lead & 0x07) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
}

// The start of the character that ends before text[at]; at > 0.
inline size_t utf8_previous(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

void append_utf8(std::string& out, char32_t code);

enum class Utf8Part : uint8_t {
  character,  // one whole character
  broken,     // a maximal part that no following byte can complete
  open,       // the valid start of a character; `text` ends inside it
};
// Kind and length of the first part of `text` (not empty, any bytes).
struct Utf8Step {
  Utf8Part part;
  size_t length;
};
Utf8Step utf8_step(std::string_view text);

bool utf8_valid(std::string_view text);
// `text` with each broken maximal part, and an open end, as U+FFFD.
std::string utf8_repaired(std::string_view text);

}  // namespace rbee::text
