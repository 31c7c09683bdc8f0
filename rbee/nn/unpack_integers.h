#pragma once

#include <cstdint>

#include "rbee/io/tensor_entry.h"

namespace rbee::nn {

// Rows [first, first + count) of an entry with packed integers, in memory of their own: blocks of
// its type, or where that has 16 bits, bf16 where activations are and else the type, each value
// rounded once. Runs on all processors of the process, holding a few rows of codes for each.
io::TensorEntry unpacked(const io::TensorEntry& entry, int64_t first, int64_t count,
                         DType activations);

}  // namespace rbee::nn
