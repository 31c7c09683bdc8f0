// Picture files from strangers, and base64. What decodes has the size that its header says and can
// be written and read again.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/core/error.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/image/png.h"

namespace {

using namespace rbee;

constexpr io::ImageLimits kLimits{.side = 1024, .pixels = 1 << 18};

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

void decode(std::string_view bytes) {
  try {
    const io::Pixels pixels = io::decode_image(bytes, "image", kLimits);
    const io::ImageHeader header = io::read_image_header(bytes, "image", kLimits);
    require(header.width == pixels.width && header.height == pixels.height, "another size");
    const io::Pixels again = io::decode_image(io::encode_png(pixels), "image");
    require(again.values == pixels.values, "another picture");
  } catch (const Error&) {
  }
}

void decode_text(std::string_view text) {
  try {
    const std::string bytes = io::decode_base64(text, "image");
    require(io::decode_base64(io::encode_base64(bytes), "image") == bytes, "other bytes");
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  decode(bytes);
  decode_text(bytes);
  static_cast<void>(io::image_parameters(bytes));
  return 0;
}
