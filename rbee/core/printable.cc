#include "rbee/core/printable.h"

#include <cstddef>
#include <cstdint>

namespace rbee {
namespace {

struct Character {
  uint32_t code = 0;
  size_t length = 0;  // in bytes; 0: these are no UTF-8
};

// The character that `text`, which is not empty, begins with. Unicode 15.0, table 3-7.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length == 0 || length > text.size()) return {};
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  const bool longer_than_needed = code < (length == 4 ? 0x10000u : length == 3 ? 0x800u : 0x80u);
  if (surrogate || longer_than_needed || code > 0x10ffff) return {};
  return {code, length};
}

// C0, DEL and C1; ends of lines and paragraphs, and what sets the direction of what follows.
bool is_hidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

void append_escape(std::string& out, uint32_t code) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const int digits = code > 0xff ? 4 : 2;
  out += digits == 4 ? "\\u" : "\\x";
  for (int i = digits - 1; i >= 0; --i) out += kDigits[code >> (4 * i) & 0xf];
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  while (!text.empty()) {
    const Character next = first_character(text);
    const size_t length = next.length > 0 ? next.length : 1;
    if (next.length == 0) {
      append_escape(out, static_cast<uint8_t>(text[0]));
    } else if (is_hidden(next.code) && kept.find(text[0]) == std::string_view::npos) {
      append_escape(out, next.code);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string printable_line(std::string_view text) {
  return escaped(text, "");
}

std::string printable_text(std::string_view text) {
  return escaped(text, "\n\t");
}

size_t first_character_bytes(std::string_view text) {
  return text.empty() ? 0 : first_character(text).length;
}

}  // namespace rbee
