#pragma once
// JPEG files (ITU-T T.81), for decode_image and encode_image.

#include <string>
#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

inline constexpr std::string_view kJpegSignature = "\xff\xd8\xff";

ImageHeader read_jpeg_header(std::string_view bytes, std::string_view field);
// Refuses a file that ends too early or is damaged.
Pixels decode_jpeg(std::string_view bytes, std::string_view field);

// pixels: three channels. quality: 0 to 100; from 90 on, colour has the full resolution (4:4:4).
// exif: a block, or empty; left out if it does not fit a segment.
std::string encode_jpeg(const Pixels& pixels, int32_t quality, std::string_view exif);
bool fits_jpeg(std::string_view exif);
// The first Exif block of a file, or empty.
std::string_view jpeg_exif(std::string_view bytes);
// The first comment (COM) of a file, or empty.
std::string_view jpeg_comment(std::string_view bytes);

}  // namespace rbee::io
