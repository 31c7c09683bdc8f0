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
  return exif_comment(bytes.starts_with(kJpegSignature) ? jpeg_exif(bytes) : webp_exif(bytes));
}

std::optional<std::string> image_comment(std::string_view bytes) {
  if (bytes.starts_with(kGifSignature)) return sound_text(gif_comment(bytes));
  if (bytes.starts_with(kPngSignature)) return exif_comment(png_exif(bytes));
  const auto camera = exif_camera(webp_exif(bytes));
  if (camera && camera->starts_with("prompt:")) return camera;
  return bytes.starts_with(kJpegSignature) ? sound_text(jpeg_comment(bytes)) : std::nullopt;
}

}  // namespace rbee::io
