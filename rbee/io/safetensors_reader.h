#pragma once

#include <memory>
#include <vector>

#include "rbee/io/mapped_file.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::io {

// Reads the header of one safetensors file (https://github.com/huggingface/safetensors, section
// Format); tensor data is not touched. BOOL tensors come as u8. Throws invalid_argument on a
// malformed file, naming the file, the tensor and the values, and unsupported on element types that
// are not implemented.
std::vector<TensorEntry> read_safetensors(const std::shared_ptr<const MappedFile>& file);

}  // namespace rbee::io
