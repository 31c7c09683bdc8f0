#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rbee/core/dtype.h"

namespace rbee::quant {

// Rows of codes of 2, 3, 4 or 8 bits: value = scale * (code - zero).
struct IntegerRows {
  std::span<const uint8_t> codes;  // (rows, in)
  int64_t rows = 0, in = 0;
  int bits = 4;
  std::span<const float> scales;    // (rows, groups)
  std::span<const uint16_t> zeros;  // (rows, groups)
  int64_t groups = 1;
  std::span<const int32_t> group_of_block;  // (in / 32): the group of 32 inputs
};

// The rows as blocks, (rows, in / 32) of them into `to`. Scales are rounded to f16.
//  - q4_0: up to 4 bits, every zero 2^(bits - 1);
//  - q4_1: up to 4 bits; -zero * scale is rounded to f16;
//  - q8_0: 8 bits, every zero 128.
// Throws Error(invalid_argument) for another type, other bits or rows that are no whole blocks. For
// q4_0 and q8_0 it does not read the zeros.
void integer_blocks(DType dtype, const IntegerRows& rows, std::byte* to);

}  // namespace rbee::quant
