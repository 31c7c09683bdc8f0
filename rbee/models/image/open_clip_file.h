#pragma once
// Text encoders under OpenCLIP's names, whose projections of attention are one matrix.

#include <string_view>
#include <vector>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

// The tensors behind `prefix` under the names of diffusers; what is no part of the text encoder is
// left out. Throws invalid_argument and unsupported naming a tensor of another shape.
std::vector<io::TensorEntry> open_clip_tensors(const io::Checkpoint& file, std::string_view prefix);

}  // namespace rbee::models
