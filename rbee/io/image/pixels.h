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

// What a file's header says, before anything is decoded.
struct ImageHeader {
  ImageFormat format = ImageFormat::png;
  int32_t width = 0;
  int32_t height = 0;
};

// Checked against the header, so that a small file cannot take much memory.
struct ImageLimits {
  int32_t side = 8192;
  int64_t pixels = int64_t{1} << 25;
};

// Throws invalid_argument in the name of `field` (say "init_image") if the bytes are not PNG, JPEG,
// WebP, GIF or BMP (the error names AVIF, HEIC, JPEG XL and TIFF), or the sizes are beyond the
// limits.
ImageHeader read_image_header(std::string_view bytes, std::string_view field,
                              const ImageLimits& limits = {});
// Also throws invalid_argument if a file is not whole, if a JPEG has more than 100 scans (each
// costs as much as the whole picture), or if a PNG holds much data after the last row. Grey and
// CMYK become RGB, 16 bits become 8, and opacity, also that of one transparent colour, becomes the
// fourth channel. Reads the first picture of a GIF or WebP animation. Turns PNG, JPEG and WebP
// files upright by their Exif block (GIF and BMP have none), and skips texts, profiles and other
// notes. Memory: at most the file and twice the pixels.
Pixels decode_image(std::string_view bytes, std::string_view field, const ImageLimits& limits = {});

}  // namespace rbee::io
