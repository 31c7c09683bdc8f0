#pragma once
// Text encoders with OpenCLIP's names, where the projections of attention are one matrix.

#include <string_view>
#include <vector>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

// The tensors after `prefix` under diffusers' names, without tensors that are not the text
// encoder's. Throws invalid_argument and unsupported naming a tensor of another shape.
std::vector<io::TensorEntry> open_clip_tensors(const io::Checkpoint& file, std::string_view prefix);

}  // namespace rbee::models
