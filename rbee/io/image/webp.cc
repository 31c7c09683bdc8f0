#include "rbee/io/image/webp.h"

#include <webp/decode.h>
#include <webp/encode.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/io/image/exif.h"

namespace rbee::io {
namespace {

const uint8_t* data_of(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

struct Delete {
  void operator()(WebPIDecoder* decoder) const { WebPIDelete(decoder); }
};
using Incremental = std::unique_ptr<WebPIDecoder, Delete>;

WebPBitstreamFeatures features_of(std::string_view bytes, std::string_view field) {
  WebPBitstreamFeatures out;
  const VP8StatusCode status = WebPGetFeatures(data_of(bytes), bytes.size(), &out);
  check(status == VP8_STATUS_OK, field, "it is no WebP file that can be read");
  return out;
}

constexpr size_t kForm = 8;         // "WEBP" comes after "RIFF" and the file's size
constexpr size_t kFirstChunk = 12;  // after that
constexpr size_t kChunkHead = 8;    // name, size

size_t number(std::string_view bytes, size_t at, size_t count) {
  size_t out = 0;
  for (size_t i = 0; i < count; ++i) out |= size_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return out;
}

// The contents of the first chunk of that name; empty: there is none, or it is not whole.
std::string_view chunk_of(std::string_view bytes, std::string_view name) {
  bytes.remove_prefix(std::min(kFirstChunk, bytes.size()));
  while (bytes.size() >= kChunkHead) {
    const size_t length = number(bytes, 4, 4);
    const std::string_view rest = bytes.substr(kChunkHead);
    if (length > rest.size()) return {};
    if (bytes.starts_with(name)) return rest.substr(0, length);
    bytes = rest.substr(std::min(rest.size(), length + length % 2));
  }
  return {};
}

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
// `contents`: bits that say which; opacity is found without its bit.
std::string extended(size_t contents, size_t width, size_t height, std::string_view further) {
  std::string chunks = chunk("VP8X", little_endian(contents, 4) + little_endian(width - 1, 3) +
                                         little_endian(height - 1, 3));
  chunks += further;
  return "RIFF" + little_endian(chunks.size() + 4, 4) + "WEBP" + chunks;
}

std::string with_exif(const Pixels& pixels, std::string_view simple, std::string_view exif) {
  constexpr size_t kExif = 0x08;
  std::string chunks(simple.substr(kFirstChunk));
  chunks += chunk("EXIF", exif);
  return extended(kExif, static_cast<size_t>(pixels.width), static_cast<size_t>(pixels.height),
                  chunks);
}

Pixels decode_still(std::string_view bytes, std::string_view field) {
  const WebPBitstreamFeatures features = features_of(bytes, field);
  // The decoder of parts does not ask for what it does not need.
  check(number(bytes, 4, 4) <= bytes.size() - kForm, field, "it is no whole WebP file");
  const bool opacity = features.has_alpha != 0;
  Pixels out{.width = features.width,
             .height = features.height,
             .channels = opacity ? 4 : 3,
             .values = {}};
  const int stride = out.width * out.channels;
  out.values.resize(static_cast<size_t>(stride) * static_cast<size_t>(out.height));
  const Incremental decoder(
      WebPINewRGB(opacity ? MODE_RGBA : MODE_RGB, out.values.data(), out.values.size(), stride));
  if (decoder == nullptr) fail(Code::out_of_memory, "webp", "the decoder does not start");
  // A piece whose head is not whole is read again from its start, so they are few.
  constexpr size_t kPieces = 16;
  const size_t piece = bytes.size() / kPieces + 1;
  VP8StatusCode status = VP8_STATUS_SUSPENDED;
  for (size_t end = 0; status == VP8_STATUS_SUSPENDED && end < bytes.size();) {
    check_cancelled("image");
    end = std::min(end + piece, bytes.size());
    status = WebPIUpdate(decoder.get(), data_of(bytes), end);
  }
  check(status == VP8_STATUS_OK, field, "it is no whole WebP file");
  return out;
}

// On a canvas of the file's size, which is black, and without opacity where the file has any.
Pixels decode_first(std::string_view bytes, const WebPBitstreamFeatures& canvas,
                    std::string_view field) {
  constexpr size_t kFrameHead = 16;  // place, size, duration, flags
  const std::string_view frame = chunk_of(bytes, "ANMF");
  check(frame.size() > kFrameHead, field, "it is no whole WebP file");
  const size_t left = 2 * number(frame, 0, 3), top = 2 * number(frame, 3, 3);
  const size_t width = number(frame, 6, 3) + 1, height = number(frame, 9, 3) + 1;
  const auto wide = static_cast<size_t>(canvas.width), high = static_cast<size_t>(canvas.height);
  check(left + width <= wide && top + height <= high, field,
        "it is no WebP file that can be read: a picture beyond its canvas");
  const std::string file = extended(0, width, height, frame.substr(kFrameHead));
  Pixels picture = decode_still(file, field);
  const size_t wanted = canvas.has_alpha != 0 ? 4 : 3;
  const auto channels = static_cast<size_t>(picture.channels);
  if (width == wide && height == high && channels == wanted) return picture;
  Pixels out{.width = canvas.width,
             .height = canvas.height,
             .channels = static_cast<int32_t>(wanted),
             .values = std::vector<uint8_t>(wide * high * wanted)};
  for (size_t y = 0; y < height; ++y) {
    uint8_t* to = &out.values[((top + y) * wide + left) * wanted];
    const uint8_t* from = &picture.values[y * width * channels];
    for (size_t x = 0; x < width; ++x, to += wanted, from += channels) {
      to[wanted - 1] = UINT8_MAX;  // of opacity, where the picture has none
      std::copy_n(from, std::min(channels, wanted), to);
    }
  }
  return out;
}

// libwebp's writer: custom_ptr is the text that it appends to. It has no way for exceptions.
int append_to(const uint8_t* data, size_t size, const WebPPicture* picture) {
  try {
    static_cast<std::string*>(picture->custom_ptr)
        ->append(reinterpret_cast<const char*>(data), size);
  } catch (const std::exception&) {
    return 0;
  }
  return 1;
}

// libwebp asks after each row of blocks.
int goes_on(int /*percent*/, const WebPPicture* /*picture*/) {
  return is_cancelled() ? 0 : 1;
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
  Pixels out = features.has_animation != 0 ? decode_first(bytes, features, field)
                                           : decode_still(bytes, field);
  return upright(std::move(out), exif_orientation(webp_exif(bytes)));
}

std::string encode_webp(const Pixels& pixels, int32_t quality, std::string_view exif) {
  check_cancelled("image");
  const auto fail_writing = [] {
    fail(Code::internal, "webp", "the picture could not be written");
  };
  WebPConfig config;
  WebPPicture picture;
  std::string simple;
  if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, static_cast<float>(quality)) ||
      !WebPPictureInit(&picture)) {
    fail_writing();
  }
  const std::unique_ptr<WebPPicture, void (*)(WebPPicture*)> owner(&picture, WebPPictureFree);
  picture.width = pixels.width;
  picture.height = pixels.height;
  picture.writer = append_to;
  picture.custom_ptr = &simple;
  picture.progress_hook = goes_on;
  const bool written =
      WebPPictureImportRGB(&picture, pixels.values.data(), pixels.width * 3) != 0 &&
      WebPEncode(&config, &picture) != 0;
  if (!written) {
    if (picture.error_code == VP8_ENC_ERROR_USER_ABORT) check_cancelled("image");
    if (picture.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY) throw std::bad_alloc();
    fail_writing();
  }
  return exif.empty() ? simple : with_exif(pixels, simple, exif);
}

std::string_view webp_exif(std::string_view bytes) {
  return is_webp(bytes) ? chunk_of(bytes, "EXIF") : std::string_view();
}

}  // namespace rbee::io
