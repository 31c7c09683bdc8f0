#pragma once
// Pictures as files that say how they were made, in the places where AUTOMATIC1111 writes that: the
// text "parameters" of a PNG, the Exif comment of a JPEG or WebP file.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

struct Encoding {
  ImageFormat format = ImageFormat::png;  // no gif
  int32_t quality = 90;                   // 0 to 100, of jpeg and webp
};

// pixels: of three channels. Throws invalid_argument for values out of range. Parameters that do
// not fit are left out.
std::string encode_image(const Pixels& pixels, const Encoding& encoding,
                         std::string_view parameters = {});
// False for parameters that encode_image leaves out: an Exif block has at most 65,527 bytes in a
// JPEG file, of two for most characters. Other files take any.
bool parameters_fit(ImageFormat format, std::string_view parameters);
// What encode_image was given; nothing for other files, also damaged ones.
std::optional<std::string> image_parameters(std::string_view bytes);
// Where other programs write: the Exif comment of a PNG file, the graph that ComfyUI gives a WebP
// file in place of a camera, the comment of a GIF file, a JPEG file's that has none in Exif.
std::optional<std::string> image_comment(std::string_view bytes);

}  // namespace rbee::io
