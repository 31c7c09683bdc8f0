#pragma once
// What tokenizers need of a GGUF file, for chat models and for text encoders of pictures.

#include "rbee/io/metadata.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

// The vocabulary that a GGUF file brings along. Throws not_found and invalid_argument naming the
// field.
text::GgufVocab gguf_vocab(const io::Metadata& metadata);

}  // namespace rbee::engine
