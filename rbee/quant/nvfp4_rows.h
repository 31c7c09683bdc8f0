#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rbee::quant {

// Rows of an NVFP4 matrix in the form of Hugging Face folders, with codes and scales apart.
struct Nvfp4Rows {
  std::span<const std::byte> codes;   // (rows, in / 2): two neighbours in a byte, low nibble first
  std::span<const std::byte> scales;  // (rows, in / 16): E4M3, not negative
};

// The rows as blocks of DType::nvfp4: (rows, in / 64) of shared::BlockNVFP4.
void nvfp4_blocks(const Nvfp4Rows& rows, std::byte* to);

}  // namespace rbee::quant
