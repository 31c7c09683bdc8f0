#pragma once
// GIF files (CompuServe 1990, version 89a), for decode_image.

#include <string>
#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

inline constexpr std::string_view kGifSignature = "GIF8";

ImageHeader read_gif_header(std::string_view bytes, std::string_view field);
// The first picture of the file. Pixels of the screen that it does not cover, and its transparent
// colour, have opacity 0. Refuses a file that ends within this picture or is damaged there.
Pixels decode_gif(std::string_view bytes, std::string_view field);
// The first comment before the first picture; empty if there is none, it is longer than 64 KiB, or
// the file is damaged.
std::string gif_comment(std::string_view bytes);

}  // namespace rbee::io
