#pragma once
// Any checkpoint as a GGUF file in one of the recipes' types.

#include <vector>

#include "tools/convert/hf_to_gguf.h"
#include "tools/convert/recipe.h"

namespace rbee::tools {

// Sets all keys of the new file and returns its tensors: those of a GGUF file as they are, those of
// a Hugging Face folder by hf_to_gguf(). Throws as that does.
std::vector<SourceTensor> to_gguf(const io::Checkpoint& checkpoint, const HfToGgufOptions& options,
                                  const Recipe& recipe, io::GgufWriter& writer);

}  // namespace rbee::tools
