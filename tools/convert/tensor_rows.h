#pragma once
// A tensor's rows in another type, on several threads.

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>

#include "rbee/core/dtype.h"
#include "tools/convert/source_tensor.h"

namespace rbee::tools {

// n elements of any float or block type as f32, and back to f32, f16, bf16 or a block type; throws
// unsupported for others. `from` and `to` need no alignment. importance: as of
// quant::quantize_row(), which block types alone use.
void row_to_float(DType dtype, const std::byte* from, float* to, int64_t n);
void row_from_float(DType dtype, const float* from, std::byte* to, int64_t n,
                    const float* importance = nullptr);

// Whether convert_rows() can make `dtype`.
bool can_convert_to(DType dtype);

struct RowOptions {
  DType to = DType::f32;
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;  // set from elsewhere: `cancelled` is thrown
  // Of the columns, for block types: (columns), or (matrices, columns) of a stack; empty: all
  // equal.
  std::span<const float> importance = {};
};

// Calls `write` with the rows (along the last axis) edited and in the wanted type, in order, some
// megabytes at a time; of a stack one expert after another, each with the whole edit. Rows of block
// types that only change places keep their bits. Throws invalid_argument, naming the tensor and
// row, for values that are not finite or do not fit the type.
void convert_rows(const SourceTensor& tensor, const RowOptions& options,
                  const std::function<void(std::span<const std::byte>)>& write);

}  // namespace rbee::tools
