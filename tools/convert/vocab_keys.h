#pragma once

#include <string>

#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"

namespace rbee::tools {

// Sets tokenizer.ggml.* and tokenizer.chat_template from the files beside a Hugging Face
// checkpoint's weights. `rows`: of the token table; ids that no token has are filled up to it.
// Returns whether white space after special tokens belongs to them, which readers take from the
// model's name (Phi-3). Throws not_found when tokenizer.json is missing, unsupported for what GGUF
// files cannot hold, and invalid_argument.
bool set_vocab_keys(const io::Checkpoint& checkpoint, int64_t rows, io::GgufWriter& writer);

}  // namespace rbee::tools
