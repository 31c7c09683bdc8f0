#pragma once
// Cuts and joins tensors of a checkpoint, for the layouts of other programs.

#include <string>

#include "rbee/io/tensor_entry.h"

namespace rbee::models {

// Parts [first, first + count) of an entry whose rows are `shares` equal parts; in place. Throws
// invalid_argument if the rows cannot be split so.
struct RowShare {
  int64_t first = 0;
  int64_t count = 1;
  int64_t shares = 1;
};
io::TensorEntry rows_of(const io::TensorEntry& entry, const RowShare& share, std::string name);

// An entry with its numbers in another order, in new memory.
io::TensorEntry with_bytes(const io::TensorEntry& entry, std::string name, const Shape& shape,
                           std::shared_ptr<std::vector<std::byte>> bytes);

// The second half of the rows before the first, in new memory.
io::TensorEntry halves_swapped(const io::TensorEntry& entry, std::string name);

}  // namespace rbee::models
