#include "rbee/text/utf8.h"

#include <cstring>

namespace rbee::text {
namespace {

// Length and range of the second byte for a lead byte (Unicode 15.0, table 3-7); length 0: no lead.
struct Lead {
  size_t length;
  uint8_t second_low, second_high;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Bytes of pure ASCII at the start, in steps of eight.
size_t ascii_prefix(std::string_view text) {
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  return at;
}

// Bytes at the start of `text` that are whole characters.
size_t valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    at += ascii_prefix(text.substr(at));
    if (at == text.size()) break;
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.part != Utf8Part::character) break;
    at += step.length;
  }
  return at;
}

}  // namespace

void append_utf8(std::string& out, char32_t code) {
  const auto tail = [&](int shift) {
    out.push_back(static_cast<char>(0x80 | (code >> shift & 0x3F)));
  };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | code >> 12));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

Utf8Step utf8_step(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {Utf8Part::character, 1};
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {Utf8Part::broken, 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Part::open, i};
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool good =
        i == 1 ? byte >= lead.second_low && byte <= lead.second_high : (byte & 0xC0) == 0x80;
    if (!good) return {Utf8Part::broken, i};
  }
  return {Utf8Part::character, lead.length};
}

bool utf8_valid(std::string_view text) {
  return valid_prefix(text) == text.size();
}

std::string utf8_repaired(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t good = valid_prefix(text);
    out.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) break;
    out.append(kReplacementUtf8);
    text.remove_prefix(utf8_step(text).length);
  }
  return out;
}

}  // namespace rbee::text
