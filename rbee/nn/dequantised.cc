#include "rbee/nn/dequantised.h"

#include <algorithm>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/nn/row_threads.h"
#include "rbee/quant/quant.h"

namespace rbee::nn {

io::TensorEntry dequantised(const io::TensorEntry& entry, DType dtype) {
  RB_ASSERT(is_quantized(entry.dtype) && (dtype == DType::f16 || dtype == DType::bf16));
  constexpr int64_t kBlocksAtOnce = 64;
  const DTypeInfo& type = info(entry.dtype);
  const auto blocks = static_cast<int64_t>(entry.data.size()) / type.block_bytes;
  const int64_t elements = blocks * type.block_size;
  auto values = std::make_shared<std::vector<uint16_t>>(static_cast<size_t>(elements));
  for_rows<std::vector<float>>(
      blocks, kBlocksAtOnce, [&](int64_t first, int64_t count, std::vector<float>& floats) {
        floats.resize(static_cast<size_t>(count * type.block_size));
        quant::dequantize_row(entry.dtype, entry.data.data() + first * type.block_bytes,
                              floats.data(), count * type.block_size);
        std::ranges::transform(floats, values->begin() + first * type.block_size, [&](float x) {
          return dtype == DType::f16 ? to_f16(x).bits : to_bf16(x).bits;
        });
      });
  if (entry.file) entry.file->dont_need(entry.data);
  return {.name = entry.name,
          .dtype = dtype,
          .shape = entry.shape,
          .data = std::as_bytes(std::span(*values)),
          .file = nullptr,
          .owner = values};
}

}  // namespace rbee::nn
