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

// Some columns and rows of a resized picture.
struct ResizedPart {
  int32_t width = 0, height = 0;  // of the whole
  int32_t left = 0, top = 0, columns = 0, rows = 0;
};
// By lanczos, or by nearest; computes only this part. The part must lie within the whole and not be
// empty.
Pixels resized_part(const Pixels& pixels, const ResizedPart& part);
Pixels nearest_part(const Pixels& pixels, const ResizedPart& part);

}  // namespace rbee::io
