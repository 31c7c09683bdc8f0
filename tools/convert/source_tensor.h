#pragma once
// A tensor of the file to be written, and where its values come from.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rbee/io/tensor_entry.h"

namespace rbee::tools {

// What happens to stored values on their way.
struct RowEdit {
  // Within each of so many heads rows i and i + half become neighbours, as rope's interleaved
  // layout wants them (the elements of a vector count as rows); 0 = rows stay.
  int64_t pair_heads = 0;
  bool transposed = false;  // the file has (..., columns, rows)
  float offset = 0;         // value -> (value + offset) * scale
  float scale = 1;
  std::vector<float> scales;  // of the matrices of a stack, of one size each, besides; empty: 1

  bool changes_values() const { return offset != 0 || scale != 1 || !scales.empty(); }
};

struct SourceTensor {
  io::TensorEntry stored;  // under its name in the new file; of a stack without data
  RowEdit edit;
  std::shared_ptr<const std::vector<float>> made;  // owns the values that no file has
  std::vector<io::TensorEntry> stack;  // experts, if each is a tensor of its own; of one shape

  // The tensors that the values come from.
  std::span<const io::TensorEntry> sources() const {
    return stack.empty() ? std::span(&stored, 1) : std::span(stack);
  }
};

}  // namespace rbee::tools
