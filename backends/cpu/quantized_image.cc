#include "backends/cpu/quantized_image.h"

#include <algorithm>

#include "backends/cpu/image_conv_parts.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

// Fewer elements than this are rounded by the caller alone.
constexpr int64_t kElementsPerTask = 16384;

thread_local Scratch row_scratch;

View contiguous_like(const View& x, void* data, DType dtype, int64_t channels) {
  View view = x;
  view.data = data;
  view.dtype = dtype;
  view.sizes[3] = channels;
  view.strides[3] = 1;
  view.strides[2] = channels;
  view.strides[1] = view.strides[2] * view.sizes[2];
  view.strides[0] = view.strides[1] * view.sizes[1];
  return view;
}

// The channels of pixel `pixel` of all images as floats: in place, or in `buffer`.
const float* channels_of(const View& x, const FloatRows& rows, int64_t pixel, float* buffer) {
  const int64_t column = pixel % x.size(2), row = pixel / x.size(2);
  const int64_t at =
      row / x.size(1) * x.stride(0) + row % x.size(1) * x.stride(1) + column * x.stride(2);
  if (x.dtype == DType::f32 && x.stride(3) == 1) return x.as<float>() + at;
  const int64_t bytes = x.dtype == DType::f32 ? sizeof(float) : sizeof(uint16_t);
  const std::byte* from = x.as<std::byte>() + at * bytes;
  copy_channels(rows, x.dtype, from, x.stride(3), x.size(3), buffer);
  return buffer;
}

}  // namespace

QuantizedImage quantize_image(const View& x, const LinearIsa& isa, Scratch& scratch) {
  const int64_t in = x.size(3), groups = in / kGroup;
  const int64_t pixels = x.size(0) * x.size(1) * x.size(2);
  int8_t* q = nullptr;
  float *scale = nullptr, *sum32 = nullptr;
  const auto carve = [&](Carver carver) {
    q = carver.take<int8_t>(pixels * in);
    scale = carver.take<float>(pixels * groups);
    sum32 = carver.take<float>(pixels * groups);
    return carver.used();
  };
  carve(Carver(scratch.reserve(carve(Carver(nullptr)))));
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(in, 1));
  ThreadPool::shared().parallel_for(pixels, grain, [&](int64_t begin, int64_t end, int) {
    Carver row(row_scratch.reserve(static_cast<size_t>(2 * in + 32) * sizeof(float)));
    float* floats = row.take<float>(in);
    float* sum16 = row.take<float>(2 * groups);
    for (int64_t p = begin; p < end; ++p) {
      isa.quantize(channels_of(x, *isa.rows, p, floats), in,
                   {.q = q + p * in,
                    .scale = scale + p * groups,
                    .sum32 = sum32 + p * groups,
                    .sum16 = sum16});
    }
  });
  return {.q = contiguous_like(x, q, DType::u8, in),
          .scale = contiguous_like(x, scale, DType::f32, groups),
          .sum32 = contiguous_like(x, sum32, DType::f32, groups)};
}

}  // namespace rbee::cpu
