// An ESRGAN file and the network that it describes. Input: the header of a safetensors file, a NUL
// byte and the data.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/models/image/upscaler.h"
#include "tests/fuzz/cpu_device.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/weight_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rbee;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view header = fuzz::next_field(rest);
  static const fuzz::WeightFolder folder;
  try {
    const auto file = folder.put("made.safetensors", fuzz::safetensors_file(header, rest));
    const auto network = models::load_upscaler(file, fuzz::cpu(), DType::f32);
    if (network->scale() < 1 || network->side_step() < 1) throw std::logic_error("no size");
  } catch (const Error& error) {
    fuzz::expect_reason(error);
  }
  return 0;
}
