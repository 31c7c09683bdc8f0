#pragma once
// Takes a part of a matrix, for a rank that holds no more of it.

#include <optional>

#include "rbee/group/share.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::nn {

// The rows and the inputs of a matrix (rows, in) that a rank takes; none given: all.
struct MatrixCut {
  std::optional<group::Range> rows = {};
  std::optional<group::Range> inputs = {};

  bool whole() const { return !rows && !inputs; }
  bool empty() const { return (rows && rows->count == 0) || (inputs && inputs->count == 0); }
};

// What a rank takes of a stack of matrices (experts, rows, in).
struct StackCut {
  std::optional<group::Range> experts = {};  // none given: all
  MatrixCut matrix = {};                     // of each

  group::Range of(int64_t count) const { return experts.value_or(group::Range{0, count}); }
  bool empty() const { return matrix.empty() || (experts && experts->count == 0); }
};

// That part of a matrix of floats or blocks, in new memory unless it is whole. Inputs are cut at
// the ends of blocks. Gives the file's pages of what it copied back.
io::TensorEntry cut_matrix(io::TensorEntry matrix, const MatrixCut& cut);

}  // namespace rbee::nn
