#include "tools/convert/to_gguf.h"

#include "tools/convert/metadata.h"

namespace rbee::tools {

std::vector<SourceTensor> to_gguf(const io::Checkpoint& checkpoint, const HfToGgufOptions& options,
                                  const Recipe& recipe, io::GgufWriter& writer) {
  const bool is_gguf = checkpoint.format() == io::Checkpoint::Format::gguf;
  std::vector<SourceTensor> tensors =
      is_gguf ? copy_gguf(checkpoint, writer) : hf_to_gguf(checkpoint, options, writer);
  set_recipe_keys(recipe, writer);
  return tensors;
}

}  // namespace rbee::tools
