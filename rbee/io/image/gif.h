#pragma once
// GIF files (CompuServe 1990, version 89a), for decode_image.

#include <string>
#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

inline constexpr std::string_view kGifSignature = "GIF8";

ImageHeader read_gif_header(std::string_view bytes, std::string_view field);
// The first picture of the file, on a screen without opacity where it leaves some of that free or
// has a transparent colour. A file that ends within it, or is damaged there, is refused.
Pixels decode_gif(std::string_view bytes, std::string_view field);
// The first comment in front of the first picture; empty: there is none, or it has more than 64
// KiB, or the file is damaged.
std::string gif_comment(std::string_view bytes);

}  // namespace rbee::io
