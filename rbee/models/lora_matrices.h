#pragma once
// Which matrices of a model adapters may change, by its checkpoint alone.

#include <map>
#include <string>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

// Shapes (out, in) by the names that adapter files have for them, which are Hugging Face's or, for
// a model in a GGUF file, `gguf` ones: those that the loaded model has among its lora_targets().
// Throws what find_family() throws.
std::map<std::string, Shape> lora_matrices(const io::Checkpoint& model, bool gguf);

}  // namespace rbee::models
