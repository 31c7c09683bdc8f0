#include "rbee/quant/mxfp4_rows.h"

#include <cstring>

#include "backends/shared/quant_blocks.h"

namespace rbee::quant {
namespace {

constexpr int64_t kBytes = 16;  // of a group's codes

// Blocks hold input i in the low nibble of byte i, and input i + 16 in the high one.
shared::BlockMXFP4 block_of(const std::byte* codes, std::byte scale) {
  shared::BlockMXFP4 block{};
  block.e = std::to_integer<uint8_t>(scale);
  for (int i = 0; i < 32; ++i) {
    const auto pair = std::to_integer<uint8_t>(codes[i / 2]);
    const int code = i % 2 == 0 ? pair & 15 : pair >> 4;
    block.qs[i % 16] = static_cast<uint8_t>(block.qs[i % 16] | (i < 16 ? code : code << 4));
  }
  return block;
}

}  // namespace

std::vector<std::byte> mxfp4_blocks(const Mxfp4Rows& rows) {
  const int64_t wanted = (rows.rows - rows.first + rows.step - 1) / rows.step;
  std::vector<std::byte> out(static_cast<size_t>(wanted * rows.groups) *
                             sizeof(shared::BlockMXFP4));
  std::byte* to = out.data();
  for (int64_t row = rows.first; row < rows.rows; row += rows.step) {
    for (int64_t group = 0; group < rows.groups; ++group) {
      const int64_t at = row * rows.groups + group;
      const shared::BlockMXFP4 block =
          block_of(rows.codes.data() + at * kBytes, rows.scales[static_cast<size_t>(at)]);
      std::memcpy(to, &block, sizeof block);
      to += sizeof block;
    }
  }
  return out;
}

}  // namespace rbee::quant
