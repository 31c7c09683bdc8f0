#include "rbee/io/image/webp.h"

#include <webp/decode.h>

#include "rbee/core/error.h"

namespace rbee::io {
namespace {

const uint8_t* data_of(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

WebPBitstreamFeatures features_of(std::string_view bytes, std::string_view field) {
  WebPBitstreamFeatures out;
  const VP8StatusCode status = WebPGetFeatures(data_of(bytes), bytes.size(), &out);
  check(status == VP8_STATUS_OK, field, "it is no WebP file that can be read");
  if (out.has_animation != 0) {
    fail(Code::unsupported, field, "an animated WebP file; save one picture of it");
  }
  return out;
}

}  // namespace

bool is_webp(std::string_view bytes) {
  constexpr size_t kForm = 8;  // behind "RIFF" and the file's size
  return bytes.starts_with("RIFF") && bytes.size() >= kForm &&
         bytes.substr(kForm).starts_with("WEBP");
}

ImageHeader read_webp_header(std::string_view bytes, std::string_view field) {
  const WebPBitstreamFeatures features = features_of(bytes, field);
  return {ImageFormat::webp, features.width, features.height};
}

Pixels decode_webp(std::string_view bytes, std::string_view field) {
  const WebPBitstreamFeatures features = features_of(bytes, field);
  const bool opacity = features.has_alpha != 0;
  Pixels out{.width = features.width,
             .height = features.height,
             .channels = opacity ? 4 : 3,
             .values = {}};
  const int stride = out.width * out.channels;
  out.values.resize(static_cast<size_t>(stride) * static_cast<size_t>(out.height));
  const auto decode = opacity ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  const uint8_t* whole =
      decode(data_of(bytes), bytes.size(), out.values.data(), out.values.size(), stride);
  check(whole != nullptr, field, "it is no whole WebP file");
  return out;
}

}  // namespace rbee::io
