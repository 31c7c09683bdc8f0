#pragma once
// SentencePiece's own model files ("spiece.model", "tokenizer.model"): protocol buffers of the
// message ModelProto in sentencepiece_model.proto.

#include "rbee/text/tokenizer.h"

namespace rbee::text {

// The vocabulary of a unigram or BPE model in the fields of GGUF files, for tokenizer_from_gguf().
// Throws invalid_argument saying where the file is broken, and unsupported for word and character
// models.
GgufVocab vocab_from_sentencepiece(std::string_view file);

}  // namespace rbee::text
