#pragma once
// WebP files (RFC 9649), for decode_image and encode_image.

#include <string>
#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

// A RIFF file of the form WEBP.
bool is_webp(std::string_view bytes);

ImageHeader read_webp_header(std::string_view bytes, std::string_view field);
// Decodes the picture, or the first one of an animation. The canvas is black, and transparent if
// the file has opacity. Refuses a file that ends too early or is damaged.
Pixels decode_webp(std::string_view bytes, std::string_view field);

// pixels: of three channels. quality: 0 to 100. exif: a block, or empty.
std::string encode_webp(const Pixels& pixels, int32_t quality, std::string_view exif);
// The Exif block of a file, or empty.
std::string_view webp_exif(std::string_view bytes);

}  // namespace rbee::io
