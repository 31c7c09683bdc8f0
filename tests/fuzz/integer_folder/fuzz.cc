// A folder of packed integers (AWQ, GPTQ, compressed-tensors), every value of its matrices and the
// type that each is converted to. Input: a config.json, a NUL byte, the header of a safetensors
// file, another NUL byte and the data.

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/io/checkpoint.h"
#include "rbee/nn/unpack_integers.h"
#include "tests/fuzz/expect_reason.h"
#include "tests/fuzz/weight_folder.h"

namespace {

using namespace rbee;

void read(const io::TensorEntry& entry) {
  if (!entry.integers) return;
  if (static_cast<int64_t>(io::read_floats(entry).size()) != numel(entry.shape)) {
    throw std::logic_error("another size");
  }
  const io::TensorEntry rows = nn::unpacked(entry, 0, entry.shape[0], DType::bf16);
  if (static_cast<int64_t>(rows.data.size()) != io::tensor_bytes(rows.dtype, rows.shape, "rows")) {
    throw std::logic_error("another size of rows");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  static const fuzz::WeightFolder folder;
  try {
    folder.put("config.json", fuzz::next_field(rest));
    const std::string_view header = fuzz::next_field(rest);
    const auto file = folder.put("model.safetensors", fuzz::safetensors_file(header, rest));
    const io::Checkpoint checkpoint = io::Checkpoint::open(file);
    for (const io::TensorEntry& entry : checkpoint.tensors()) read(entry);
  } catch (const Error& error) {
    fuzz::expect_reason(error);
  }
  return 0;
}
