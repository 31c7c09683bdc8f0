#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/mapped_file.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::io {

// Reads the header of one safetensors file (https://github.com/huggingface/safetensors, section
// Format); does not touch tensor data. BOOL tensors are read as u8. Throws invalid_argument for a
// malformed file, naming the file, the tensor and the values, and unsupported for element types
// that are not implemented.
std::vector<TensorEntry> read_safetensors(const std::shared_ptr<const MappedFile>& file);

// The text under a key of the header's "__metadata__"; nothing if there is none. Throws as above
// for a malformed header.
std::optional<std::string> read_safetensors_metadata(const MappedFile& file, std::string_view key);

}  // namespace rbee::io
