#pragma once
// The scale that GGUF files of NVFP4 have of a whole matrix, in a tensor beside it: "x.scale" or
// "x.weight.scale" for "x.weight", in f32. A stack of experts' matrices has one for each of them.

#include <string_view>
#include <vector>

#include "rbee/io/checkpoint.h"

namespace rbee::nn {

// Null where there is none.
const io::TensorEntry* scale_beside(const io::Checkpoint& checkpoint, std::string_view matrix);

// Throws invalid_argument where it is not `count` numbers in f32, all finite.
std::vector<float> scales_in(const io::TensorEntry& entry, int64_t count);

}  // namespace rbee::nn
