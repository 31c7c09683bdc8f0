#include "rbee/io/image/hidden_text.h"

#include <zlib.h>

#include "rbee/core/error.h"
#include "rbee/io/image/exif.h"

namespace rbee::io {
namespace {

constexpr size_t kMost = size_t{1} << 20;  // bytes of a text
constexpr size_t kByte = 8;

// The lowest bits of some channels of all pixels, in the order of the marks.
class HiddenBits {
 public:
  HiddenBits(const Pixels& pixels, bool opacity) : pixels_(pixels), opacity_(opacity) {}

  size_t left() const {
    return static_cast<size_t>(pixels_.width) * static_cast<size_t>(pixels_.height) * channels() -
           next_;
  }
  std::string take(size_t bytes) {
    std::string out;
    for (size_t i = 0; i < bytes && left() >= kByte; ++i) {
      int byte = 0;
      for (size_t bit = 0; bit < kByte; ++bit) byte = byte << 1 | take_bit();
      out += static_cast<char>(byte);
    }
    return out;
  }

 private:
  size_t channels() const { return opacity_ ? 1 : 3; }
  int take_bit() {
    const size_t pixel = next_ / channels(), channel = opacity_ ? 3 : next_ % channels();
    const auto height = static_cast<size_t>(pixels_.height);
    const size_t x = pixel / height, y = pixel % height;
    ++next_;
    const size_t place = y * static_cast<size_t>(pixels_.width) + x;
    return pixels_.values[place * static_cast<size_t>(pixels_.channels) + channel] & 1;
  }

  const Pixels& pixels_;
  bool opacity_;
  size_t next_ = 0;
};

std::optional<std::string> unzipped(const std::string& data) {
  constexpr int kGzip = 16 + MAX_WBITS;
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK) fail(Code::internal, "gzip", "zlib does not start");
  std::string out(kMost, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));  // read only
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  out.shrink_to_fit();
  inflateEnd(&stream);
  return status == Z_STREAM_END ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::string> text_of(HiddenBits bits, std::string_view plain,
                                   std::string_view zipped) {
  const std::string mark = bits.take(plain.size());
  if (mark != plain && mark != zipped) return std::nullopt;
  constexpr size_t kLength = 4;
  size_t count = 0;
  for (const char c : bits.take(kLength)) count = count << kByte | static_cast<uint8_t>(c);
  if (count > bits.left() || count / kByte > kMost) return std::nullopt;
  const std::string data = bits.take(count / kByte);
  if (mark == plain) return sound_text(data);
  const auto text = unzipped(data);
  return text ? sound_text(*text) : std::nullopt;
}

}  // namespace

std::optional<std::string> hidden_text(const Pixels& pixels) {
  if (pixels.channels == 4) {
    if (auto text = text_of({pixels, true}, "stealth_pnginfo", "stealth_pngcomp")) return text;
  }
  return text_of({pixels, false}, "stealth_rgbinfo", "stealth_rgbcomp");
}

}  // namespace rbee::io
