#pragma once
// Turns ranges of code points into ranges of UTF-8 bytes (RFC 3629).

#include <array>
#include <cstdint>
#include <vector>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

struct ByteRange {
  uint8_t low;
  uint8_t high;
};

// One to four ranges that follow each other.
struct ByteRanges {
  std::array<ByteRange, 4> parts;
  int count = 0;
};

// The encodings of the range's scalar values, without surrogates and values above U+10FFFF.
std::vector<ByteRanges> utf8_ranges(CharRange range);

// Appends the encoding of a scalar value.
void append_utf8(std::string& out, char32_t c);

}  // namespace rbee::grammar
