#pragma once
// Pictures in memory, and the files that they come in.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::io {

// 8 bits a channel, sRGB, rows from the top without gaps, channels last.
struct Pixels {
  int32_t width = 0;
  int32_t height = 0;
  int32_t channels = 3;  // 3 or 4; the fourth is opacity, not premultiplied
  std::vector<uint8_t> values;
};

enum class ImageFormat : uint8_t { png, jpeg, webp, gif, bmp };
const char* name(ImageFormat format);  // "png", "jpeg", "webp", "gif", "bmp", as in "image/png"

// What a file says of itself before anything is decoded.
struct ImageHeader {
  ImageFormat format = ImageFormat::png;
  int32_t width = 0;
  int32_t height = 0;
};

// Held against the header, so that a small file cannot ask for much memory.
struct ImageLimits {
  int32_t side = 8192;
  int64_t pixels = int64_t{1} << 25;
};

// Throws invalid_argument in the name of `field` (say "init_image") for bytes that are no PNG,
// JPEG, WebP, GIF or BMP (AVIF, HEIC, JPEG XL and TIFF by name), and for sizes beyond the limits.
ImageHeader read_image_header(std::string_view bytes, std::string_view field,
                              const ImageLimits& limits = {});
// Also throws invalid_argument for files that are not whole or, JPEG, have more than 100 scans,
// each of which costs as much as the whole picture, or, PNG, hold much behind the last row.
// Greys and inks (CMYK) become colours; 16 bits become 8; opacity that a file has, also of one
// colour, becomes the fourth channel. Of a GIF or WebP with several pictures the first is read.
// PNG, JPEG and WebP files are turned upright by their Exif block (GIF and BMP have none); texts,
// profiles and other notes are passed over. Memory: the file and twice the pixels at most, whatever
// else it holds.
Pixels decode_image(std::string_view bytes, std::string_view field, const ImageLimits& limits = {});

}  // namespace rbee::io
