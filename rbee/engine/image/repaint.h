#pragma once
// What starting from a picture needs: its size; to repaint a part of it the part around a mask,
// what stands under the mask before sampling, and putting the result back. As AUTOMATIC1111 does
// these.

#include "rbee/engine/api/image.h"
#include "rbee/engine/image/canvas.h"

namespace rbee::engine {

struct Region {
  int32_t left = 0, top = 0;  // pixels
  int32_t width = 0, height = 0;
};

// The box around what is not 0 in a mask with `padding` pixels on each side, made longer
// on one axis to have the ratio of width to height, and moved into the picture, as far as that
// reaches. Of an empty mask the whole picture.
Region region_around(const Mask& mask, int32_t padding, int32_t width, int32_t height);

io::Pixels cropped(const io::Pixels& pixels, const Region& region);
Mask cropped(const Mask& mask, const Region& region);

// The picture at another size, as AUTOMATIC1111 does it (modules/images.py, resize_image). Throws
// invalid_argument for a picture so long that what is cut off would be beyond 16384 pixels.
io::Pixels fitted(const io::Pixels& pixels, int32_t width, int32_t height, Fit how);
Mask fitted(const Mask& mask, int32_t width, int32_t height, Fit how);

// `part`, whose middle has the region's ratio, in its place in `whole`, as far as `share`, of the
// region's size, says; without opacity.
io::Pixels pasted(const io::Pixels& part, const io::Pixels& whole, const Region& region,
                  const Mask& share);

// The picture, of which under the mask colours of its surroundings run in from the edge: blurred
// copies of what the mask leaves, finer ones over coarser ones. `mask`: of the picture's size.
io::Pixels filled_around(const io::Pixels& pixels, const Mask& mask);

// How much of the painted picture shows where the softened mask has a value: all of it within the
// mask's edge, less and less beyond.
Mask widened(const Mask& softened);

}  // namespace rbee::engine
