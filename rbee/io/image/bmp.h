#pragma once
// BMP files (Windows' DIB headers of versions 3 to 5, OS/2's of both): 1 to 32 bits a pixel, plain,
// with masks, or with runs (RLE8, RLE4).

#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

inline constexpr std::string_view kBmpSignature = "BM";

// For decode_image: sizes only, and the picture. Both refuse a JPEG or PNG file within one, and
// what OS/2 alone packs. Pixels that runs leave out have the first colour; one that the palette
// does not have is black.
ImageHeader read_bmp_header(std::string_view bytes, std::string_view field);
Pixels decode_bmp(std::string_view bytes, std::string_view field);

}  // namespace rbee::io
