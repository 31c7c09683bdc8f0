#pragma once

#include <span>
#include <string>

#include "rbee/io/metadata.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::io {

// Gives tensors the shapes of the original checkpoint if a GGUF file lists them as
// "comfy.gguf.orig_shape.<name>". ComfyUI-GGUF writes a tensor whose rows are not whole blocks in
// rows of 256; in the original shape its blocks may cross the ends of rows. Throws invalid_argument
// naming `source` and the key if the shape does not have the tensor's size.
void restore_shapes(const Metadata& metadata, std::span<TensorEntry> tensors,
                    const std::string& source);

}  // namespace rbee::io
