// A safetensors file of any bytes: its header, then every tensor read from it.

#include <cstdint>

#include "rbee/io/safetensors_reader.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = rbee::fuzz::memory_file(data, size);
  try {
    volatile size_t sum = 0;
    for (const auto& tensor : rbee::io::read_safetensors(file)) {
      for (const std::byte byte : tensor.data) sum = sum + static_cast<size_t>(byte);
    }
  } catch (const rbee::Error& error) {
    rbee::fuzz::expect_reason(error);
  }
  return 0;
}
