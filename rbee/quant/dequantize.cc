#include <cstddef>
#include <cstring>

#include "rbee/quant/block_types.h"
#include "rbee/quant/quant.h"

namespace rbee::quant {

void dequantize_row(DType dtype, const void* blocks, float* out, int64_t n) {
  constexpr std::string_view kOp = "dequantize_row";
  visit_block_type(dtype, kOp, [&](auto block) {
    const int64_t bytes = row_bytes(dtype, n);
    const auto* from = static_cast<const std::byte*>(blocks);
    for (int64_t at = 0; at < bytes; at += int64_t{sizeof(block)}) {
      std::memcpy(&block, from + at, sizeof(block));
      shared::dequantize_block(block, out);
      out += decltype(block)::kElements;
    }
  });
}

}  // namespace rbee::quant
