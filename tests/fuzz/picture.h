#pragma once
// Picture files from requests. A decoded picture must have the size in its header, and must survive
// writing and reading. Settings are searched in every input.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/core/error.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/image/pixels.h"
#include "rbee/io/image/png.h"

namespace rbee::fuzz {

// A target's return value: -1 for bytes of another format, so the fuzzer drops them.
inline int decode(std::string_view bytes, io::ImageFormat format) {
  constexpr io::ImageLimits kLimits{.side = 1024, .pixels = 1 << 18};
  const auto require = [](bool condition, const char* what) {
    if (!condition) throw std::logic_error(what);
  };
  static_cast<void>(io::image_parameters(bytes));
  try {
    const io::ImageHeader header = io::read_image_header(bytes, "image", kLimits);
    if (header.format != format) return -1;
    const io::Pixels pixels = io::decode_image(bytes, "image", kLimits);
    require(header.width == pixels.width && header.height == pixels.height, "another size");
    const io::Pixels again = io::decode_image(io::encode_png(pixels), "image");
    require(again.values == pixels.values, "another picture");
  } catch (const Error&) {
  }
  return 0;
}

}  // namespace rbee::fuzz
