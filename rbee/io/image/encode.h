#pragma once
// Writes pictures as files that say how they were made, where AUTOMATIC1111 writes it: in the text
// "parameters" of a PNG, in the Exif comment of a JPEG or WebP file.

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

// pixels: three channels. Throws invalid_argument for values out of range. Leaves out parameters
// that do not fit.
std::string encode_image(const Pixels& pixels, const Encoding& encoding,
                         std::string_view parameters = {});
// False if encode_image leaves the parameters out: a JPEG file's Exif block has at most 65,527
// bytes, and most characters take two. Other files take any length.
bool parameters_fit(ImageFormat format, std::string_view parameters);
// The parameters that encode_image wrote; nothing for other files and damaged ones.
std::optional<std::string> image_parameters(std::string_view bytes);
// Settings where other programs write them: the Exif comment of a PNG file, ComfyUI's graph in the
// camera fields of a WebP file, the comment of a GIF file, and of a JPEG file without an Exif
// comment.
std::optional<std::string> image_comment(std::string_view bytes);

}  // namespace rbee::io
