#include "rbee/io/image/encode.h"

#include "rbee/core/error.h"
#include "rbee/io/image/exif.h"
#include "rbee/io/image/gif.h"
#include "rbee/io/image/jpeg.h"
#include "rbee/io/image/png.h"
#include "rbee/io/image/webp.h"

namespace rbee::io {
namespace {

constexpr const char* kParameters = "parameters";

std::string_view exif_block(std::string_view bytes) {
  if (bytes.starts_with(kPngSignature)) return png_exif(bytes);
  return bytes.starts_with(kJpegSignature) ? jpeg_exif(bytes) : webp_exif(bytes);
}

}  // namespace

std::string encode_image(const Pixels& pixels, const Encoding& encoding,
                         std::string_view parameters) {
  check(pixels.channels == 3, "image", "a picture of ", pixels.channels, " channels, not 3");
  check(encoding.quality >= 0 && encoding.quality <= 100, "quality", encoding.quality,
        " is outside of 0 to 100");
  const std::string exif = parameters.empty() ? std::string() : exif_of_comment(parameters);
  switch (encoding.format) {
    case ImageFormat::png:
      if (parameters.empty()) return encode_png(pixels);
      return encode_png(pixels, {{kParameters, std::string(parameters)}});
    case ImageFormat::jpeg:
      return encode_jpeg(pixels, encoding.quality, exif);
    case ImageFormat::webp:
      return encode_webp(pixels, encoding.quality, exif);
    case ImageFormat::gif:
    case ImageFormat::bmp:
      break;
  }
  fail(Code::invalid_argument, "format", "pictures are written as PNG, JPEG or WebP, not ",
       name(encoding.format));
}

bool parameters_fit(ImageFormat format, std::string_view parameters) {
  return format != ImageFormat::jpeg || fits_jpeg(exif_of_comment(parameters));
}

std::optional<std::string> image_parameters(std::string_view bytes) {
  if (bytes.starts_with(kPngSignature)) return png_text(bytes, kParameters);
  return exif_comment(exif_block(bytes));
}

std::optional<std::string> image_comment(std::string_view bytes) {
  if (bytes.starts_with(kGifSignature)) return sound_text(gif_comment(bytes));
  const std::string_view block = exif_block(bytes);
  if (bytes.starts_with(kPngSignature)) {
    if (auto text = exif_comment(block)) return text;
  }
  for (const ExifText tag : {ExifText::model, ExifText::maker, ExifText::description}) {
    auto text = exif_text(block, tag);
    if (text && (text->starts_with("prompt:") || text->starts_with("Prompt:"))) return text;
  }
  if (bytes.starts_with(kJpegSignature)) {
    if (auto text = sound_text(jpeg_comment(bytes))) return text;
  }
  return exif_text(block, ExifText::description);
}

}  // namespace rbee::io
