#pragma once

#include <cstdint>

#include "rbee/io/tensor_entry.h"

namespace rbee::nn {

// Rows [first, first + count) of an entry with packed integers, in memory of their own: blocks of
// its type, or where that has 16 bits, bf16 where activations are and else the type, each value
// rounded once. Runs on all processors of the process, holding a few rows of codes for each.
io::TensorEntry unpacked(const io::TensorEntry& entry, int64_t first, int64_t count,
                         DType activations);

// The same rows with their inputs in the matrix's `inputs_by_group`, which has to be there: blocks
// of its `grouped_type`.
io::TensorEntry unpacked_by_group(const io::TensorEntry& entry, int64_t first, int64_t count);

}  // namespace rbee::nn
