#include "backends/cpu/image_conv_parts.h"

#include <cstring>

#include "backends/cpu/linear/pack.h"
#include "backends/cpu/linear/scratch.h"
#include "rbee/core/dtype.h"
#include "rbee/core/half.h"

namespace rbee::cpu {
namespace {

thread_local Scratch weight_scratch;

float as_float(float x) {
  return x;
}
float as_float(f16 x) {
  return to_float(x);
}
float as_float(bf16 x) {
  return to_float(x);
}

template <typename T>
void copy_run(const T* from, int64_t step, int64_t count, float* to) {
  if constexpr (std::is_same_v<T, float>) {
    if (step == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
      return;
    }
  }
  for (int64_t i = 0; i < count; ++i) to[i] = as_float(from[i * step]);
}

// An optional operand's row of channels as floats.
template <typename T>
void add_row(const View& view, const T* row, int64_t step, int64_t count, float* sums) {
  if (!view) return;
  for (int64_t c = 0; c < count; ++c) sums[c] += as_float(row[c * step]);
}

template <typename T>
void store_row(const LinearIsa& isa, const float* sums, int64_t count, T* y) {
  if constexpr (std::is_same_v<T, bf16>) {
    if (isa.to_bf16 != nullptr) return isa.to_bf16(sums, count, &y->bits);
  }
  for (int64_t c = 0; c < count; ++c) {
    if constexpr (std::is_same_v<T, float>) {
      y[c] = sums[c];
    } else if constexpr (std::is_same_v<T, f16>) {
      y[c] = to_f16(sums[c]);
    } else {
      y[c] = to_bf16(sums[c]);
    }
  }
}

template <typename T>
void finish_pixel_as(const ImageConvArgs& args, const LinearIsa& isa, const PixelPart& part,
                     float* sums) {
  const auto [p, first, count] = part;
  const View &y = args.y, &channels = args.channel_add, &residual = args.residual;
  const int64_t n = p / (y.size(1) * y.size(2));
  const int64_t row = p / y.size(2) % y.size(1), column = p % y.size(2);
  const int64_t bias_step = args.bias.strides[0];
  add_row(args.bias, args.bias.as<T>() + first * bias_step, bias_step, count, sums);
  add_row(channels, channels.as<T>() + n * channels.strides[0] + first * channels.strides[1],
          channels.strides[1], count, sums);
  const int64_t at = n * residual.strides[0] + row * residual.strides[1] +
                     column * residual.strides[2] + first * residual.strides[3];
  add_row(residual, residual.as<T>() + at, residual.strides[3], count, sums);
  store_row(isa, sums, count, y.as<T>() + p * y.size(3) + first);
}

}  // namespace

const PanelKernels* conv_kernels(const LinearIsa& isa, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return isa.f32;
    case DType::f16:
      return isa.f16;
    case DType::bf16:
      return isa.bf16;
    case DType::q8_0:
      return isa.q8_0;
    default:
      return nullptr;
  }
}

void copy_channels(DType dtype, const void* from, int64_t step, int64_t count, float* to) {
  switch (dtype) {
    case DType::f16:
      return copy_run(static_cast<const f16*>(from), step, count, to);
    case DType::bf16:
      return copy_run(static_cast<const bf16*>(from), step, count, to);
    default:
      return copy_run(static_cast<const float*>(from), step, count, to);
  }
}

void finish_pixel(const ImageConvArgs& args, const LinearIsa& isa, const PixelPart& part,
                  float* sums) {
  switch (args.y.dtype) {
    case DType::f16:
      return finish_pixel_as<f16>(args, isa, part, sums);
    case DType::bf16:
      return finish_pixel_as<bf16>(args, isa, part, sums);
    default:
      return finish_pixel_as<float>(args, isa, part, sums);
  }
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
