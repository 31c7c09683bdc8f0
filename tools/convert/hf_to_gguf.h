#pragma once
// A Hugging Face checkpoint as a GGUF file: keys, names, order of rows, vocabulary. The forms are
// those of llama.cpp's converter (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

#include <string>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "tools/convert/source_tensor.h"

namespace rbee::tools {

struct HfToGgufOptions {
  std::string name;        // general.name where config.json has none
  bool vocabulary = true;  // the tokenizer and the chat template too
};

// Sets the file's keys, all but general.file_type, and returns its tensors, which refer to the
// checkpoint's files. Throws unsupported naming what a GGUF file cannot hold, not_found for missing
// tensors, settings and files, and invalid_argument.
std::vector<SourceTensor> hf_to_gguf(const io::Checkpoint& checkpoint,
                                     const HfToGgufOptions& options, io::GgufWriter& writer);

}  // namespace rbee::tools
