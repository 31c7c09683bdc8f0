#pragma once
// BMP files (Windows' DIB headers of versions 3 to 5, OS/2's of both): 1 to 32 bits a pixel, plain,
// with masks, or with runs (RLE8, RLE4).

#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

inline constexpr std::string_view kBmpSignature = "BM";

// For decode_image: the sizes, and the picture. Both refuse an embedded JPEG or PNG file and OS/2's
// own compression. Pixels that runs skip have the first colour; a colour outside the palette is
// black.
ImageHeader read_bmp_header(std::string_view bytes, std::string_view field);
Pixels decode_bmp(std::string_view bytes, std::string_view field);

}  // namespace rbee::io
