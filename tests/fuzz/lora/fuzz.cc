// An adapter's file, then every number read from it. Input: a GGUF file, or PEFT's
// adapter_config.json, NUL, the header of a safetensors file, NUL and the data.

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/models/lora_file.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/weight_folder.h"

namespace {

using namespace rbee;

void read(const models::LoraFileLayer& layer) {
  if (!std::isfinite(layer.factor)) throw std::logic_error("a factor that is no number");
  if (layer.down->shape[0] != layer.up->shape[1]) throw std::logic_error("two ranks");
  for (const io::TensorEntry* entry : {layer.down, layer.up}) {
    try {
      const size_t count = io::read_floats(*entry).size();
      if (static_cast<int64_t>(count) != numel(entry->shape)) throw std::logic_error("its size");
    } catch (const Error& error) {
      fuzz::expect_reason(error);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  static const fuzz::WeightFolder folder;
  try {
    std::filesystem::path file;
    if (rest.starts_with("GGUF")) {
      file = folder.put("adapter.gguf", rest);
    } else {
      folder.put("adapter_config.json", fuzz::next_field(rest));
      const std::string_view header = fuzz::next_field(rest);
      file = folder.put("adapter_model.safetensors", fuzz::safetensors_file(header, rest));
    }
    const models::LoraFile adapter(file);
    if (adapter.layers().empty()) throw std::logic_error("an adapter without layers");
    for (const models::LoraFileLayer& layer : adapter.layers()) read(layer);
  } catch (const Error& error) {
    fuzz::expect_reason(error);
  }
  return 0;
}
