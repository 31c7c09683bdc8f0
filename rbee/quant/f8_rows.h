#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rbee::quant {

// Rows of a matrix of e4m3 codes (OCP FP8) with a scale for each block of (scale_rows,
// scale_columns) of a matrix that they are a part of.
struct F8Rows {
  std::span<const std::byte> codes;  // (rows, in)
  int64_t rows = 0, in = 0;
  std::span<const float> scales;  // row-major, of the whole matrix; its last blocks may be cut
  int64_t scale_rows = 1, scale_columns = 1;
  int64_t first_row = 0;  // of the whole matrix
};

// Whether blocks of DType::f8_g128 hold the rows without rounding: whole groups of 128 inputs, a
// scale for each.
bool fits_f8_blocks(const F8Rows& rows);

// The same numbers as (rows, in / 128) of shared::BlockF8_G128. A group with a NaN among its codes
// is NaN. Throws Error(invalid_argument) for rows that do not fit.
std::vector<std::byte> f8_blocks(const F8Rows& rows);

}  // namespace rbee::quant
