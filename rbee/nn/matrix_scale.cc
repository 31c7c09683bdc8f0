#include "rbee/nn/matrix_scale.h"

#include <algorithm>
#include <cmath>
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

std::vector<float> scales_in(const io::TensorEntry& entry, int64_t count) {
  check(entry.dtype == DType::f32 && numel(entry.shape) == count, "load", "tensor ", entry.name,
        " is ", entry.dtype, " (", entry.shape, "), wanted f32 (", count, ")");
  std::vector<float> values(static_cast<size_t>(count));
  std::memcpy(values.data(), entry.data.data(), values.size() * sizeof(float));
  check(std::ranges::all_of(values, [](float x) { return std::isfinite(x); }), "load", "tensor ",
        entry.name, " has a scale that is not finite");
  return values;
}

}  // namespace rbee::nn
