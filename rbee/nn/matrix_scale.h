#pragma once
// The scale that GGUF files of NVFP4 have of a whole matrix, in a tensor beside it: "x.scale" or
// "x.weight.scale" for "x.weight", in f32.

#include <string_view>

#include "rbee/io/checkpoint.h"

namespace rbee::nn {

// Null where there is none.
const io::TensorEntry* scale_beside(const io::Checkpoint& checkpoint, std::string_view matrix);

// Throws invalid_argument where it is not one f32.
float scale_in(const io::TensorEntry& entry);

}  // namespace rbee::nn
