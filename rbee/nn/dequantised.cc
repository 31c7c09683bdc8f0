#include "rbee/nn/dequantised.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "backends/api/dispatch.h"
#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/nn/row_threads.h"
#include "rbee/quant/quant.h"

namespace rbee::nn {
namespace {

template <typename T>
void to_floats(const std::byte* from, int64_t count, float* to) {
  const auto* values = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      to[i] = static_cast<float>(values[i]);
    } else {
      to[i] = to_float(values[i]);
    }
  }
}

}  // namespace

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

Tensor quantized(const Tensor& x) {
  constexpr int64_t kElementsAtOnce = int64_t{1} << 16;
  const int64_t in = x.dim(-1), rows = x.numel() / in;
  Tensor blocks = empty({rows, in}, DType::q8_0, x.device());
  const auto* from = static_cast<const std::byte*>(x.view().data);
  auto* to = static_cast<std::byte*>(blocks.view().data);
  for_rows<std::vector<float>>(
      rows, std::max<int64_t>(kElementsAtOnce / in, 1),
      [&](int64_t first, int64_t count, std::vector<float>& floats) {
        floats.resize(static_cast<size_t>(count * in));
        dispatch<float, f16, bf16, double, f8e4m3>("load", x.dtype(), [&]<typename T>() {
          to_floats<T>(from + first * row_bytes(x.dtype(), in), count * in, floats.data());
        });
        quant::quantize_row(DType::q8_0, floats.data(), to + first * row_bytes(DType::q8_0, in),
                            count * in);
      });
  return blocks.reshape(x.shape());
}

}  // namespace rbee::nn
