#pragma once

#include <cstdint>

#include "rbee/io/tensor_entry.h"

namespace rbee::nn {

// Unpacks rows [first, first + count) of an entry with packed integers into new memory, as blocks
// of the entry's type. If that type has 16 bits, the result is bf16 if activations are bf16, else
// the type, each value rounded once. Uses all processors of the process and holds a few rows of
// codes for each.
io::TensorEntry unpacked(const io::TensorEntry& entry, int64_t first, int64_t count,
                         DType activations);

// The same rows as blocks of the matrix's `grouped_type`, with their inputs in the order of its
// `inputs_by_group`, which must not be empty.
io::TensorEntry unpacked_by_group(const io::TensorEntry& entry, int64_t first, int64_t count);

}  // namespace rbee::nn
