#include "rbee/io/image/pixels.h"

#include "rbee/core/error.h"
#include "rbee/io/image/bmp.h"
#include "rbee/io/image/gif.h"
#include "rbee/io/image/jpeg.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/webp.h"

namespace rbee::io {
namespace {

// Formats that other programs write; nullptr: none of those.
const char* other_format(std::string_view bytes) {
  using namespace std::string_view_literals;
  for (const auto& [start, name] : {std::pair{"II*\0"sv, "a TIFF"},
                                    {"MM\0*"sv, "a TIFF"},
                                    {"\xff\x0a"sv, "a JPEG XL"},
                                    {"\0\0\0\x0cJXL "sv, "a JPEG XL"}}) {
    if (bytes.starts_with(start)) return name;
  }
  constexpr size_t kKind = 4, kBrand = 8;
  if (bytes.size() < kBrand + 4 || bytes.substr(kKind, 4) != "ftyp") return nullptr;
  const std::string_view brand = bytes.substr(kBrand, 4);
  if (brand.starts_with("avi")) return "an AVIF";
  const bool heic = brand.starts_with("hei") || brand.starts_with("hev");
  return heic || brand == "mif1" || brand == "msf1" ? "a HEIC" : nullptr;
}

ImageHeader header_of(std::string_view bytes, std::string_view field) {
  if (bytes.starts_with(kPngSignature)) return read_png_header(bytes, field);
  if (bytes.starts_with(kJpegSignature)) return read_jpeg_header(bytes, field);
  if (bytes.starts_with(kGifSignature)) return read_gif_header(bytes, field);
  if (is_webp(bytes)) return read_webp_header(bytes, field);
  if (bytes.starts_with(kBmpSignature)) return read_bmp_header(bytes, field);
  if (const char* other = other_format(bytes)) {
    fail(Code::invalid_argument, field, "it is ", other,
         " file, which is not read; save it as PNG, JPEG or WebP");
  }
  fail(Code::invalid_argument, field, "its ", bytes.size(),
       " bytes are no PNG, JPEG, WebP, GIF or BMP file");
}

}  // namespace

const char* name(ImageFormat format) {
  switch (format) {
    case ImageFormat::png:
      return "png";
    case ImageFormat::jpeg:
      return "jpeg";
    case ImageFormat::webp:
      return "webp";
    case ImageFormat::gif:
      return "gif";
    case ImageFormat::bmp:
      break;
  }
  return "bmp";
}

ImageHeader read_image_header(std::string_view bytes, std::string_view field,
                              const ImageLimits& limits) {
  const ImageHeader header = header_of(bytes, field);
  const bool sides = header.width >= 1 && header.width <= limits.side && header.height >= 1 &&
                     header.height <= limits.side;
  check(sides, field, header.width, " x ", header.height, " pixels are outside of 1 to ",
        limits.side, " on a side");
  check(int64_t{header.width} * header.height <= limits.pixels, field, header.width, " x ",
        header.height, " pixels are more than ", limits.pixels);
  return header;
}

Pixels decode_image(std::string_view bytes, std::string_view field, const ImageLimits& limits) {
  const ImageHeader header = read_image_header(bytes, field, limits);
  switch (header.format) {
    case ImageFormat::png:
      return decode_png(bytes, field);
    case ImageFormat::jpeg:
      return decode_jpeg(bytes, field);
    case ImageFormat::webp:
      return decode_webp(bytes, field);
    case ImageFormat::gif:
      return decode_gif(bytes, field);
    case ImageFormat::bmp:
      break;
  }
  return decode_bmp(bytes, field);
}

}  // namespace rbee::io
