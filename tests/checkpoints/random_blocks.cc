#include "tests/checkpoints/random_blocks.h"

#include <cmath>
#include <cstring>
#include <random>

#include "backends/api/dispatch_blocks.h"
#include "rbee/core/half.h"

namespace rbee::test {
namespace {

template <class Block>
void set_scale(Block& block, float scale) {
  if constexpr (std::is_same_v<Block, shared::BlockIQ1_M>) {
    const int bits = to_f16(scale).bits;
    for (int i = 0; i < 4; ++i) {
      const int part = (bits >> (4 * i) & 15) << 12;
      block.scales[i] = static_cast<uint16_t>((block.scales[i] & 0xfff) | part);
    }
  } else if constexpr (std::is_same_v<Block, shared::BlockNVFP4>) {
    uint8_t code = 0;
    while (code < 0x7e && shared::ue4m3_halved(code) < scale / 2) ++code;
    for (uint8_t& d : block.d) d = code;
  } else if constexpr (requires { block.d = uint16_t{}; }) {
    block.d = to_f16(scale).bits;
  }
}

double mean_square(std::span<const float> values) {
  double sum = 0;
  for (const float x : values) sum += double{x} * double{x};
  return sum / static_cast<double>(values.size());
}

}  // namespace

std::vector<std::byte> random_blocks(DType dtype, std::span<const float> values) {
  std::mt19937 random(static_cast<uint32_t>(values.size()) + static_cast<uint32_t>(dtype));
  std::vector<std::byte> bytes(
      static_cast<size_t>(row_bytes(dtype, static_cast<int64_t>(values.size()))));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  dispatch_blocks("random_blocks", dtype, [&]<typename Block>() {
    Block block;
    for (size_t i = 0; i < bytes.size() / sizeof(Block); ++i) {
      std::memcpy(&block, bytes.data() + i * sizeof(Block), sizeof(Block));
      set_scale(block, 1);
      float decoded[Block::kElements];
      shared::dequantize_block(block, decoded);
      const double wanted = mean_square(values.subspan(i * Block::kElements, Block::kElements));
      set_scale(block, static_cast<float>(std::sqrt(wanted / mean_square(decoded))));
      std::memcpy(bytes.data() + i * sizeof(Block), &block, sizeof(Block));
    }
  });
  return bytes;
}

}  // namespace rbee::test
