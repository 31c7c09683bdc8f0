#include "rbee/nn/matrix_scale.h"

#include <cstring>

#include "rbee/core/error.h"

namespace rbee::nn {

const io::TensorEntry* scale_beside(const io::Checkpoint& checkpoint, std::string_view matrix) {
  constexpr std::string_view kWeight = ".weight";
  const io::TensorEntry* entry = checkpoint.find(matrix);
  if (entry == nullptr || entry->dtype != DType::nvfp4 || !matrix.ends_with(kWeight)) {
    return nullptr;
  }
  const std::string_view stem = matrix.substr(0, matrix.size() - kWeight.size());
  const io::TensorEntry* scale = checkpoint.find(cat(stem, ".scale"));
  return scale != nullptr ? scale : checkpoint.find(cat(matrix, ".scale"));
}

float scale_in(const io::TensorEntry& entry) {
  check(entry.dtype == DType::f32 && numel(entry.shape) == 1, "load", "tensor ", entry.name, " is ",
        entry.dtype, " (", entry.shape, "), wanted one f32");
  float value = 0;
  std::memcpy(&value, entry.data.data(), sizeof value);
  return value;
}

}  // namespace rbee::nn
