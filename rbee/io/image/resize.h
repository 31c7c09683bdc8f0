#pragma once
// Pictures at other sizes.

#include "rbee/io/image/pixels.h"

namespace rbee::io {

// lanczos: three lobes, widened where the picture shrinks. bilinear: triangles, widened too, with
// the integers that Pillow's Image.BILINEAR computes in. nearest: the pixel at each one's centre.
enum class Resampler : uint8_t { lanczos, bilinear, nearest };

// width, height: at least 1.
Pixels resized(const Pixels& pixels, int32_t width, int32_t height,
               Resampler resampler = Resampler::lanczos);

}  // namespace rbee::io
