#pragma once
// Adapters that turn the rows of a weight by orthogonal matrices (OFT, Qiu et al. 2023; BOFT, Liu
// et al. 2023), in the form of kohya's scripts and LyCORIS.

#include <optional>
#include <string>

#include "rbee/models/image/weight_change.h"

namespace rbee::models {

struct Rotation {
  // Q - Q^T of these is S, and R = (I + S) (I - S)^-1. OFT: (blocks, b, b), each of b rows of the
  // weight, which becomes R^T W. BOFT: (factors, blocks, b, b), one after another R W, of rows that
  // stand 2^i b / 2 apart in the i-th one (butterflies).
  io::TensorEntry blocks;
  std::optional<io::TensorEntry> rescale = std::nullopt;  // factors of the rows that come out
  // The norm of all S is at most as much, times the rows; 0: any.
  float constraint = 0;
};

// Throws invalid_argument naming the file `path` and the tensor for blocks that are none.
std::shared_ptr<const WeightChange> rotation_change(const std::string& path,
                                                    const Rotation& rotation);

}  // namespace rbee::models
