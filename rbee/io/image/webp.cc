#include "rbee/io/image/webp.h"

#include <webp/decode.h>
#include <webp/encode.h>

#include <algorithm>
#include <memory>

#include "rbee/core/error.h"
#include "rbee/io/image/exif.h"

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

constexpr size_t kForm = 8;         // where "WEBP" stands, behind "RIFF" and the file's size
constexpr size_t kFirstChunk = 12;  // behind it
constexpr size_t kChunkHead = 8;    // name, size

std::string little_endian(size_t value, int count) {
  std::string out;
  for (int shift = 0; shift < 8 * count; shift += 8) {
    out += static_cast<char>(value >> shift & 0xFF);
  }
  return out;
}

// Chunks begin at even places.
std::string chunk(const char* name, std::string_view data) {
  std::string out = name + little_endian(data.size(), 4);
  out += data;
  if (data.size() % 2 == 1) out += '\0';
  return out;
}

// Any further chunk makes a file of the extended form, which begins with its size and contents.
std::string with_exif(const Pixels& pixels, std::string_view simple, std::string_view exif) {
  constexpr size_t kExif = 0x08;
  const std::string head = little_endian(kExif, 4) +
                           little_endian(static_cast<size_t>(pixels.width) - 1, 3) +
                           little_endian(static_cast<size_t>(pixels.height) - 1, 3);
  std::string chunks = chunk("VP8X", head);
  chunks += simple.substr(kFirstChunk);
  chunks += chunk("EXIF", exif);
  return "RIFF" + little_endian(chunks.size() + 4, 4) + "WEBP" + chunks;
}

}  // namespace

bool is_webp(std::string_view bytes) {
  return bytes.starts_with("RIFF") && bytes.size() >= kForm &&
         bytes.substr(kForm).starts_with("WEBP");
}

ImageHeader read_webp_header(std::string_view bytes, std::string_view field) {
  const WebPBitstreamFeatures features = features_of(bytes, field);
  ImageHeader out{ImageFormat::webp, features.width, features.height};
  if (swaps_sides(exif_orientation(webp_exif(bytes)))) std::swap(out.width, out.height);
  return out;
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
  return upright(std::move(out), exif_orientation(webp_exif(bytes)));
}

std::string encode_webp(const Pixels& pixels, int32_t quality, std::string_view exif) {
  uint8_t* written = nullptr;
  const size_t size = WebPEncodeRGB(pixels.values.data(), pixels.width, pixels.height,
                                    pixels.width * 3, static_cast<float>(quality), &written);
  const std::unique_ptr<uint8_t, void (*)(void*)> owner(written, WebPFree);
  if (size == 0) fail(Code::internal, "webp", "the picture could not be written");
  const std::string_view simple(reinterpret_cast<const char*>(written), size);
  return exif.empty() ? std::string(simple) : with_exif(pixels, simple, exif);
}

std::string_view webp_exif(std::string_view bytes) {
  if (!is_webp(bytes)) return {};
  bytes.remove_prefix(std::min(kFirstChunk, bytes.size()));
  while (bytes.size() >= kChunkHead) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) {
      length |= size_t{static_cast<uint8_t>(bytes[4 + i])} << (8 * i);
    }
    const std::string_view rest = bytes.substr(kChunkHead);
    if (length > rest.size()) return {};
    if (bytes.starts_with("EXIF")) return rest.substr(0, length);
    bytes = rest.substr(std::min(rest.size(), length + length % 2));
  }
  return {};
}

}  // namespace rbee::io
