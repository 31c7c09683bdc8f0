#pragma once

#include <span>
#include <string>

#include "rbee/io/metadata.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::io {

// Gives tensors the shapes of the original checkpoint, where a GGUF file lists them:
// "comfy.gguf.orig_shape.<name>", for ComfyUI-GGUF lays tensors whose rows are no whole blocks out
// in rows of 256. Blocks may then run over the ends of rows. Throws invalid_argument naming
// `source`, the key and a size or shape that is not the tensor's.
void restore_shapes(const Metadata& metadata, std::span<TensorEntry> tensors,
                    const std::string& source);

}  // namespace rbee::io
