#include "backends/cpu/image_conv_parts.h"

#include "backends/cpu/linear/pack.h"
#include "backends/cpu/linear/scratch.h"
#include "rbee/core/dtype.h"

namespace rbee::cpu {
namespace {

thread_local Scratch weight_scratch;

}  // namespace

const PanelKernels* conv_kernels(const LinearIsa& isa, DType dtype) {
  const bool takes =
      dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::q8_0;
  return takes ? isa.kernels[dtype] : nullptr;
}

void copy_channels(const FloatRows& rows, DType dtype, const std::byte* from, int64_t step,
                   int64_t count, float* to) {
  if (step == 1) return rows.widen(dtype, from, count, to);
  const int64_t bytes = step * info(dtype).block_bytes;
  for (int64_t i = 0; i < count; ++i) rows.widen(dtype, from + i * bytes, 1, to + i);
}

void add_channels(const FloatRows& rows, const View& view, int64_t at, int64_t count, float* sums) {
  if (!view) return;
  const int64_t step = view.strides[view.rank - 1], bytes = info(view.dtype).block_bytes;
  const std::byte* from = view.as<std::byte>() + at * bytes;
  if (step == 1) return rows.add(view.dtype, from, count, sums);
  for (int64_t c = 0; c < count; ++c) rows.add(view.dtype, from + c * step * bytes, 1, sums + c);
}

void finish_pixel(const ImageConvArgs& args, const LinearIsa& isa, const PixelPart& part,
                  float* sums) {
  const auto [p, first, count] = part;
  const View &y = args.y, &bias = args.bias, &channels = args.channel_add;
  const View& residual = args.residual;
  const int64_t n = p / (y.size(1) * y.size(2));
  const int64_t row = p / y.size(2) % y.size(1), column = p % y.size(2);
  add_channels(*isa.rows, bias, first * bias.strides[0], count, sums);
  const int64_t channel = n * channels.strides[0] + first * channels.strides[1];
  add_channels(*isa.rows, channels, channel, count, sums);
  const int64_t at = n * residual.strides[0] + row * residual.strides[1] +
                     column * residual.strides[2] + first * residual.strides[3];
  add_channels(*isa.rows, residual, at, count, sums);
  std::byte* to = y.as<std::byte>() + (p * y.size(3) + first) * info(y.dtype).block_bytes;
  isa.rows->narrow(y.dtype, sums, count, to);
}

// The weight (out, depth) in panels: as it is, or packed for this call.
const std::byte* conv_panels(const View& weight) {
  if (weight.packing == kPanelPacking) return weight.as<std::byte>();
  View matrix = weight;
  matrix.rank = 2;
  matrix.sizes[1] = weight.size(1) * weight.size(2) * weight.size(3);
  matrix.strides[0] = matrix.sizes[1];
  matrix.strides[1] = 1;
  const int64_t panels = (weight.size(0) + kPanelRows - 1) / kPanelRows;
  const int64_t bytes = panels * panel_bytes(weight.dtype, matrix.sizes[1]);
  std::byte* packed = weight_scratch.reserve(static_cast<size_t>(bytes));
  pack_panels(matrix, packed);
  return packed;
}

}  // namespace rbee::cpu
