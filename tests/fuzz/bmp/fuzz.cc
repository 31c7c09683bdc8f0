// BMP files from strangers.

#include "tests/fuzz/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  return rbee::fuzz::decode(bytes, rbee::io::ImageFormat::bmp);
}
