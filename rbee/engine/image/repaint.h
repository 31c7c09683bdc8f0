#pragma once
// Helpers to start from a picture, all as in AUTOMATIC1111: its size, the part around a mask, the
// filling under the mask, and pasting the result back.

#include "rbee/engine/api/image.h"
#include "rbee/engine/image/canvas.h"

namespace rbee::engine {

struct Region {
  int32_t left = 0, top = 0;  // pixels
  int32_t width = 0, height = 0;
};

// The bounding box of the mask's non-zero pixels with `padding` pixels on each side, made longer on
// one axis to get the ratio of width to height, and moved into the picture as far as possible. For
// an empty mask the whole picture.
Region region_around(const Mask& mask, int32_t padding, int32_t width, int32_t height);

io::Pixels cropped(const io::Pixels& pixels, const Region& region);
Mask cropped(const Mask& mask, const Region& region);

// Resizes the picture as AUTOMATIC1111 does (modules/images.py, resize_image). Throws
// invalid_argument if a cut-off part of a very long picture would be beyond 16384 pixels.
io::Pixels fitted(const io::Pixels& pixels, int32_t width, int32_t height, Fit how);
Mask fitted(const Mask& mask, int32_t width, int32_t height, Fit how);

// Puts `part`, whose middle has the region's ratio, into its place in `whole`, weighted by `share`,
// which has the region's size; drops the opacity.
io::Pixels pasted(const io::Pixels& part, const io::Pixels& whole, const Region& region,
                  const Mask& share);

// Fills the masked part with colours that run in from the edge: blurred copies of the unmasked
// part, finer ones over coarser ones. `mask`: of the picture's size.
io::Pixels filled_around(const io::Pixels& pixels, const Mask& mask);

// How much of the painted picture shows for a softened mask: all of it within the mask's edge, less
// and less beyond.
Mask widened(const Mask& softened);

}  // namespace rbee::engine
