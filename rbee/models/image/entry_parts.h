#pragma once
// Tensors of a checkpoint cut and put together, as the layouts of other programs need it.

#include <string>

#include "rbee/io/tensor_entry.h"

namespace rbee::models {

// Rows [first, first + count) of an entry whose rows are `shares` equal parts, counted in parts; in
// place. Throws invalid_argument when the rows are no such parts.
struct RowShare {
  int64_t first = 0;
  int64_t count = 1;
  int64_t shares = 1;
};
io::TensorEntry rows_of(const io::TensorEntry& entry, const RowShare& share, std::string name);

// An entry's numbers in another order, in memory of their own.
io::TensorEntry with_bytes(const io::TensorEntry& entry, std::string name, const Shape& shape,
                           std::shared_ptr<std::vector<std::byte>> bytes);

// The second half of the rows before the first, in memory of its own.
io::TensorEntry halves_swapped(const io::TensorEntry& entry, std::string name);

}  // namespace rbee::models
