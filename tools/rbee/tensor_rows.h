#pragma once
// A tensor's rows in another type, on several threads.

#include <cstddef>
#include <functional>
#include <span>

#include "rbee/core/dtype.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::tools {

// n elements of any float or block type as f32, and back to f32, f16, bf16 or a block type; throws
// unsupported for others. `from` and `to` need no alignment.
void row_to_float(DType dtype, const std::byte* from, float* to, int64_t n);
void row_from_float(DType dtype, const float* from, std::byte* to, int64_t n);

// Whether convert_rows() can make `dtype`.
bool can_convert_to(DType dtype);

// Calls `write` with the rows (along the last axis) in the type `to`, in order, some at a time;
// rows that have it already are passed as they are. Throws invalid_argument, naming the tensor and
// row, for values that are not finite or do not fit the type.
void convert_rows(const io::TensorEntry& tensor, DType to, int threads,
                  const std::function<void(std::span<const std::byte>)>& write);

}  // namespace rbee::tools
