#pragma once
// JPEG files (ITU-T T.81), for decode_image.

#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

inline constexpr std::string_view kJpegSignature = "\xff\xd8\xff";

ImageHeader read_jpeg_header(std::string_view bytes, std::string_view field);
// A file that ends too early, or is damaged within, is refused.
Pixels decode_jpeg(std::string_view bytes, std::string_view field);

}  // namespace rbee::io
