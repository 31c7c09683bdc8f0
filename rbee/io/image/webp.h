#pragma once
// WebP files (RFC 9649), for decode_image.

#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

// A RIFF file of the form WEBP.
bool is_webp(std::string_view bytes);

// Throws unsupported for animations.
ImageHeader read_webp_header(std::string_view bytes, std::string_view field);
// A file that ends too early, or is damaged within, is refused.
Pixels decode_webp(std::string_view bytes, std::string_view field);

}  // namespace rbee::io
