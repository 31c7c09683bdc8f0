#include "rbee/grammar/utf8_ranges.h"

#include <algorithm>

namespace rbee::grammar {
namespace {

int length_of(char32_t c) {
  return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

std::array<uint8_t, 4> encode(char32_t c, int length) {
  constexpr std::array<uint8_t, 5> kLead{0, 0, 0xC0, 0xE0, 0xF0};
  std::array<uint8_t, 4> out{};
  for (int i = length - 1; i > 0; --i, c >>= 6) {
    out[static_cast<size_t>(i)] = static_cast<uint8_t>(0x80 | (c & 0x3F));
  }
  out[0] = static_cast<uint8_t>(kLead[static_cast<size_t>(length)] | c);
  return out;
}

// Splits until the last bytes of `low` and `high` span all that may come there, or nothing else
// differs.
void add(char32_t low, char32_t high, int length, std::vector<ByteRanges>& out) {
  for (int tail = 1; tail < length; ++tail) {
    const char32_t mask = (char32_t{1} << (6 * tail)) - 1;
    if ((low & ~mask) == (high & ~mask)) continue;
    if ((low & mask) != 0) {
      add(low, low | mask, length, out);
      return add((low | mask) + 1, high, length, out);
    }
    if ((high & mask) != mask) {
      add(low, (high & ~mask) - 1, length, out);
      return add(high & ~mask, high, length, out);
    }
  }
  const auto first = encode(low, length), last = encode(high, length);
  ByteRanges ranges;
  ranges.count = length;
  for (size_t i = 0; i < static_cast<size_t>(length); ++i) ranges.parts[i] = {first[i], last[i]};
  out.push_back(ranges);
}

}  // namespace

std::vector<ByteRanges> utf8_ranges(CharRange range) {
  constexpr std::array<CharRange, 5> kParts{CharRange{0, 0x7F}, CharRange{0x80, 0x7FF},
                                            CharRange{0x800, 0xD7FF}, CharRange{0xE000, 0xFFFF},
                                            CharRange{0x10000, 0x10FFFF}};
  std::vector<ByteRanges> out;
  for (const CharRange& part : kParts) {
    const char32_t low = std::max(range.low, part.low), high = std::min(range.high, part.high);
    if (low <= high) add(low, high, length_of(low), out);
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  const int length = length_of(c);
  const auto bytes = encode(c, length);
  out.append(bytes.begin(), bytes.begin() + length);
}

}  // namespace rbee::grammar
