#pragma once
// PNG files (ISO/IEC 15948) and the texts in them.

#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/image/pixels.h"

namespace rbee::io {

inline constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";

struct PngText {
  std::string key;    // 1 to 79 printable ASCII characters
  std::string value;  // UTF-8; a tEXt chunk when ASCII, else an iTXt chunk
};

// Throws invalid_argument for sizes that do not fit the values, and for keys out of range.
std::string encode_png(const Pixels& pixels, const std::vector<PngText>& texts = {});
// The value of the first tEXt, zTXt or iTXt chunk of that key. Nothing if there is none, if it is
// damaged or inflates to more than 1 MiB, or if the bytes are not a PNG. Latin-1 from other
// programs becomes UTF-8.
std::optional<std::string> png_text(std::string_view bytes, std::string_view key);
// The first Exif block of a file, or empty.
std::string_view png_exif(std::string_view bytes);

// For decode_image: the sizes, and the picture.
ImageHeader read_png_header(std::string_view bytes, std::string_view field);
Pixels decode_png(std::string_view bytes, std::string_view field);

}  // namespace rbee::io
