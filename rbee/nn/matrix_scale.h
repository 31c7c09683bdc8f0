#pragma once
// The scale of a whole NVFP4 matrix. GGUF files keep it in a tensor beside the matrix: "x.scale" or
// "x.weight.scale" for "x.weight", in f32. A stack of experts' matrices has one for each expert.

#include <string_view>
#include <vector>

#include "rbee/io/checkpoint.h"

namespace rbee::nn {

// Null if there is none.
const io::TensorEntry* scale_beside(const io::Checkpoint& checkpoint, std::string_view matrix);

// Throws invalid_argument unless the tensor has `count` finite f32 numbers.
std::vector<float> scales_in(const io::TensorEntry& entry, int64_t count);

}  // namespace rbee::nn
