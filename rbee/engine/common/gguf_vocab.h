#pragma once
// The tokenizer's part of a GGUF file, for chat models and for text encoders of image models.

#include "rbee/io/metadata.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

// The vocabulary in a GGUF file. Throws not_found and invalid_argument naming the field.
text::GgufVocab gguf_vocab(const io::Metadata& metadata);

}  // namespace rbee::engine
