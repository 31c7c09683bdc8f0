#pragma once
// What a new file takes from an old one besides weights.

#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "tools/convert/recipe.h"
#include "tools/convert/source_tensor.h"

namespace rbee::tools {

// The tensors under their own names, as stored.
std::vector<SourceTensor> as_stored(const io::Checkpoint& checkpoint);

// Copies the keys of a GGUF file but those that no longer hold; returns its tensors as stored, but
// that matrices with a scale beside them (matrix_scale.h) are multiplied by it, in its stead.
std::vector<SourceTensor> copy_gguf(const io::Checkpoint& checkpoint, io::GgufWriter& writer);

// general.file_type and general.quantization_version.
void set_recipe_keys(const Recipe& recipe, io::GgufWriter& writer);

// Heads that share a head of keys and values, by the checkpoint's settings; 1 when it does not say,
// and where layers differ.
int64_t gqa_of(const io::Checkpoint& checkpoint);
// Experts of a layer; 1 when there are none, or it does not say.
int64_t experts_of(const io::Checkpoint& checkpoint);

}  // namespace rbee::tools
