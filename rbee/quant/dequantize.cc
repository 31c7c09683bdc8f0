#include <cstddef>
#include <cstring>

#include "backends/api/dispatch_blocks.h"
#include "rbee/quant/quant.h"

namespace rbee::quant {

void dequantize_row(DType dtype, const void* blocks, float* out, int64_t n) {
  dispatch_blocks("dequantize_row", dtype, [&]<typename Block>() {
    const int64_t bytes = row_bytes(dtype, n);
    const auto* from = static_cast<const std::byte*>(blocks);
    Block block;
    for (int64_t at = 0; at < bytes; at += int64_t{sizeof(Block)}) {
      std::memcpy(&block, from + at, sizeof(Block));
      shared::dequantize_block(block, out);
      out += Block::kElements;
    }
  });
}

}  // namespace rbee::quant
