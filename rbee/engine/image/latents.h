#pragma once
// Resizes latents, with the filters of PyTorch's interpolate() that AUTOMATIC1111 offers.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/tensor/tensor.h"

namespace rbee::engine {

// Antialiased filters widen when the size shrinks, and end at the edge; the others repeat the
// outermost value. nearest_exact aligns centres, nearest aligns corners.
enum class LatentFilter : uint8_t {
  bilinear,
  bilinear_antialiased,
  bicubic,
  bicubic_antialiased,
  nearest,
  nearest_exact,
};

// values: (batch, height, width, channels) of `from`.
std::vector<float> enlarged(std::span<const float> values, const Shape& from, int64_t height,
                            int64_t width, LatentFilter filter = LatentFilter::bilinear);

}  // namespace rbee::engine
