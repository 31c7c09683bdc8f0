// An image model's file with one-byte matrices and scales, then every number read from it. Input: a
// GGUF file, or the header of a safetensors file, NUL and the data.

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/models/image/scaled_file.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/weight_folder.h"

namespace {

using namespace rbee;

void read(const io::TensorEntry& entry) {
  if (!std::isfinite(entry.scale)) throw std::logic_error("a scale that is no number");
  if (entry.scale != 1 && !io::is_fp8(entry)) throw std::logic_error("a scale of wide floats");
  try {
    const size_t count = io::read_floats(entry).size();
    if (static_cast<int64_t>(count) != numel(entry.shape)) throw std::logic_error("another size");
    if (io::is_fp8(entry)) static_cast<void>(io::widened(entry, DType::bf16));
  } catch (const Error& error) {
    fuzz::expect_reason(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  static const fuzz::WeightFolder folder;
  try {
    std::filesystem::path file;
    if (rest.starts_with("GGUF")) {
      file = folder.put("model.gguf", rest);
    } else {
      const std::string_view header = fuzz::next_field(rest);
      file = folder.put("model.safetensors", fuzz::safetensors_file(header, rest));
    }
    const io::Checkpoint checkpoint = models::open_scaled(file);
    for (const io::TensorEntry& entry : checkpoint.tensors()) read(entry);
  } catch (const Error& error) {
    fuzz::expect_reason(error);
  }
  return 0;
}
