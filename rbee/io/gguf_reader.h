#pragma once

#include <memory>
#include <vector>

#include "rbee/io/mapped_file.h"
#include "rbee/io/metadata.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::io {

struct GgufContents {
  Metadata metadata;
  std::vector<TensorEntry> tensors;  // in the file's order
};

// Reads the header of one GGUF file, version 2 or 3, little-endian. Does not touch tensor data.
// Throws invalid_argument on a malformed file, naming the file, the field and the values, and
// unsupported on versions, byte orders and tensor types that are not implemented.
GgufContents read_gguf(const std::shared_ptr<const MappedFile>& file);

}  // namespace rbee::io
