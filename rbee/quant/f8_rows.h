#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rbee::quant {

// Rows of a matrix of e4m3 codes (OCP FP8). The whole matrix has one scale for each block of
// (scale_rows, scale_columns).
struct F8Rows {
  std::span<const std::byte> codes;  // (rows, in)
  int64_t rows = 0, in = 0;
  std::span<const float> scales;  // row-major, of the whole matrix; its last blocks may be cut
  int64_t scale_rows = 1, scale_columns = 1;
  int64_t first_row = 0;  // of the whole matrix
};

// Whether blocks of DType::f8_g128 hold the rows exactly: each group of 128 inputs is whole and has
// one scale.
bool fits_f8_blocks(const F8Rows& rows);

// The same numbers as (rows, in / 128) of shared::BlockF8_G128. If a group has a NaN among its
// codes, all of it becomes NaN. Throws Error(invalid_argument) for rows that do not fit.
std::vector<std::byte> f8_blocks(const F8Rows& rows);

}  // namespace rbee::quant
