// Base64 of pictures: decoded bytes must survive encoding and decoding again.

#include "rbee/io/image/base64.h"

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rbee;
  try {
    const std::string bytes =
        io::decode_base64({reinterpret_cast<const char*>(data), size}, "image");
    if (io::decode_base64(io::encode_base64(bytes), "image") != bytes) {
      throw std::logic_error("other bytes");
    }
  } catch (const Error&) {
  }
  return 0;
}
