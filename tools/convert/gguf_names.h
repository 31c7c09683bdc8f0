#pragma once

#include <vector>

#include "rbee/io/checkpoint.h"
#include "tools/convert/gguf_form.h"

namespace rbee::tools {

// The weights of a Hugging Face checkpoint under their GGUF names, in the usual order, with the
// edits of the form. A tied output matrix is left out, and so is, with a word in the log, what is
// no part of the language model. Throws not_found naming a missing tensor.
std::vector<SourceTensor> gguf_tensors(const io::Checkpoint& checkpoint, const GgufForm& form);

}  // namespace rbee::tools
