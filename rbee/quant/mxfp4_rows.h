#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rbee::quant {

// Rows of an MXFP4 matrix in the form of Hugging Face folders, with codes and scales apart.
struct Mxfp4Rows {
  std::span<const std::byte> codes;   // (rows, in / 32, 16): two neighbours in a byte, low nibble
                                      // first
  std::span<const std::byte> scales;  // (rows, in / 32): E8M0
  int64_t rows = 0;
  int64_t groups = 0;  // of 32 inputs, in a row
  int64_t first = 0;   // takes rows first, first + step, ...
  int64_t step = 1;
};

// Those rows as blocks of DType::mxfp4: (rows / step, groups) of shared::BlockMXFP4.
std::vector<std::byte> mxfp4_blocks(const Mxfp4Rows& rows);

}  // namespace rbee::quant
