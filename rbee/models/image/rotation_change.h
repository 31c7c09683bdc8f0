#pragma once
// Adapters that rotate the rows of a weight by orthogonal matrices (OFT, Qiu et al. 2023; BOFT, Liu
// et al. 2023), in the form of kohya's scripts and LyCORIS.

#include <optional>
#include <string>

#include "rbee/models/image/weight_change.h"

namespace rbee::models {

struct Rotation {
  // Q - Q^T of these is S, and R = (I + S) (I - S)^-1. OFT: (blocks, b, b); each rotates b rows of
  // the weight, to R^T W. BOFT: (factors, blocks, b, b), applied one after another as R W; the i-th
  // factor's rows are 2^i b / 2 apart (butterflies).
  io::TensorEntry blocks;
  std::optional<io::TensorEntry> rescale = std::nullopt;  // factors of the result's rows
  // The norm of all S is at most this, times the number of rows; 0: no limit.
  float constraint = 0;
};

// Throws invalid_argument naming the file `path` and the tensor if the blocks have a wrong shape.
std::shared_ptr<const WeightChange> rotation_change(const std::string& path,
                                                    const Rotation& rotation);

}  // namespace rbee::models
