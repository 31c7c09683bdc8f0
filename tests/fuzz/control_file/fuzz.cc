// A ControlNet in one file, loaded for Stable Diffusion 1. Input: see padded_file.h.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/models/image/control_net.h"
#include "tests/fuzz/cpu_device.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/padded_file.h"
#include "tests/fuzz/text_encoder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rbee;
  static const models::ImageModel model =
      fuzz::model_of(models::ImageFamily::sd1, {8}, &fuzz::cpu());
  static const fuzz::WeightFolder folder;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const auto file = folder.put("control.safetensors", fuzz::padded_safetensors(input));
    if (models::load_control_net(file, model) == nullptr) throw std::logic_error("no network");
  } catch (const Error& error) {
    fuzz::expect_reason(error);
  }
  return 0;
}
