#pragma once
// How a camera was held: the orientation that an Exif block of a JPEG file gives (Exif 2.32, tag
// 0x0112), and turning a picture by it.

#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

// 1 to 8 as TIFF 6.0 numbers them; 1, which changes nothing, also for what is no Exif block or not
// whole. marker: an APP1 segment's bytes, behind its length.
int exif_orientation(std::string_view marker);

// The picture upright: mirrored, turned, or both; orientations 5 to 8 swap width and height.
Pixels upright(Pixels pixels, int orientation);

}  // namespace rbee::io
