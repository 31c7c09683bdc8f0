#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rbee::quant {

// Rows of a matrix in MXFP4 as Hugging Face folders hold it, codes and scales apart.
struct Mxfp4Rows {
  std::span<const std::byte> codes;   // (rows, in / 32, 16): two neighbours in a byte, low nibble
                                      // first
  std::span<const std::byte> scales;  // (rows, in / 32): E8M0
  int64_t rows = 0;
  int64_t groups = 0;  // of 32 inputs, in a row
  int64_t first = 0;   // the rows that are wanted: first, first + step, ...
  int64_t step = 1;
};

// The wanted rows as blocks of DType::mxfp4: (rows / step, groups) of shared::BlockMXFP4.
std::vector<std::byte> mxfp4_blocks(const Mxfp4Rows& rows);

}  // namespace rbee::quant
