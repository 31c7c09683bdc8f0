// PNG files from strangers. The target corrects checksums, or no mutation would pass them.

#include <zlib.h>

#include <string>

#include "tests/fuzz/picture.h"

namespace {

using namespace rbee;

constexpr size_t kHead = 8, kSum = 4;  // of a chunk: length and type; checksum

std::string with_checksums(std::string_view bytes) {
  std::string out(bytes);
  size_t at = io::kPngSignature.size();
  while (at + kHead + kSum <= out.size()) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint8_t>(out[at + i]);
    const size_t end = at + kHead + length;
    if (end + kSum > out.size()) break;
    const auto* typed = reinterpret_cast<const Bytef*>(out.data() + at + 4);
    const uLong sum = crc32(0, typed, static_cast<uInt>(length + 4));
    for (size_t i = 0; i < kSum; ++i) out[end + i] = static_cast<char>(sum >> (24 - 8 * i) & 0xff);
    at = end + kSum;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes = with_checksums({reinterpret_cast<const char*>(data), size});
  return fuzz::decode(bytes, io::ImageFormat::png);
}
