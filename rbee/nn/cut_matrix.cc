#include "rbee/nn/cut_matrix.h"

#include <cstring>
#include <memory>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::nn {

io::TensorEntry cut_matrix(io::TensorEntry matrix, const MatrixCut& cut) {
  if (cut.whole()) return matrix;
  const int64_t in = matrix.shape[1];
  const group::Range rows = cut.rows.value_or(group::Range{0, matrix.shape[0]});
  const group::Range inputs = cut.inputs.value_or(group::Range{0, in});
  RB_ASSERT(rows.end() <= matrix.shape[0] && inputs.end() <= in);
  const auto row = static_cast<size_t>(row_bytes(matrix.dtype, in));
  const auto first = static_cast<size_t>(row_bytes(matrix.dtype, inputs.first));
  const auto count = static_cast<size_t>(row_bytes(matrix.dtype, inputs.count));
  const auto made =
      std::make_shared<std::vector<std::byte>>(static_cast<size_t>(rows.count) * count);
  for (int64_t i = 0; i < rows.count; ++i) {
    const std::byte* from = matrix.data.data() + static_cast<size_t>(rows.first + i) * row + first;
    std::memcpy(made->data() + static_cast<size_t>(i) * count, from, count);
  }
  if (matrix.file) matrix.file->dont_need(matrix.data);
  matrix.shape = Shape{rows.count, inputs.count};
  matrix.data = *made;
  matrix.file = nullptr;
  matrix.owner = made;
  return matrix;
}

}  // namespace rbee::nn
